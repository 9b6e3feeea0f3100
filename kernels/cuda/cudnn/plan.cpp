#include "kernels/cuda/cudnn/plan.hpp"

#include <utility>

#include "kernels/cuda/cudnn/library.hpp"
#include "kernels/cuda/cudnn/lowering.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

constexpr std::size_t most_proposals = 16;

std::int64_t bytes_of(Element type) {
  return type == Element::boolean ? 1 : type == Element::bf16 || type == Element::f16 ? 2 : 4;
}

/// Names the target in a descriptor; where there is a handle, an operation graph brings it along.
void name_target(Descriptor& in, const Target& target, cudnnBackendAttributeName_t properties) {
  if (!target.handle) in.set(properties, *target.properties);
}

/// The configurations that cuDNN proposes, the likely fastest first.
std::vector<Descriptor> proposals(const Descriptor& operations, const Target& target) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations).set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  name_target(heuristics, target, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  if (!heuristics.finalized()) return {};
  return heuristics.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most_proposals);
}

struct Knob {
  cudnnBackendKnobType_t type;
  std::int64_t value;
};

std::optional<Descriptor> configuration(const Descriptor& operations, const Target& target, std::int64_t engine,
                                        std::span<const Knob> knobs) {
  Descriptor chosen(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  chosen.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, operations).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
  name_target(chosen, target, CUDNN_ATTR_ENGINE_DEVICEPROP);
  if (!chosen.finalized()) return std::nullopt;
  std::vector<Descriptor> choices;
  for (const Knob& knob : knobs)
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, knob.type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value)
        .finalize();
  Descriptor made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  made.set(CUDNN_ATTR_ENGINECFG_ENGINE, chosen).set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  if (!made.finalized()) return std::nullopt;
  return made;
}

/// The plan of a configuration, if there is one whose workspace is of `least` to `most` bytes.
std::optional<Plan> plan_of(const Graph& graph, const Descriptor& configuration, const Target& target,
                            std::int64_t least, std::int64_t most) {
  Descriptor made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle) made.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  name_target(made, target, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  if (!made.finalized()) return std::nullopt;
  Plan plan(graph, std::move(made));
  if (plan.workspace_bytes() < least || plan.workspace_bytes() > most) return std::nullopt;
  return plan;
}

}  // namespace

void* Plan::data_of(const Tensor& tensor, const Pointers& pointers, std::int64_t part) const {
  if (tensor.value) return const_cast<float*>(&*tensor.value);  // only read
  const bool scratch = *tensor.operand == Operand::row_sums;
  const std::int64_t first = scratch ? 0 : part * tensor.dims[0] * tensor.strides[0];
  return pointers[static_cast<std::size_t>(*tensor.operand)] + first * bytes_of(tensor.type);
}

Descriptor Plan::variant_pack(const Pointers& pointers, std::int64_t part, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> data;
  for (const Tensor& tensor : graph_.tensors) {
    if (!tensor.operand && !tensor.value) continue;
    ids.push_back(&tensor - graph_.tensors.data());
    data.push_back(data_of(tensor, pointers, part));
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(data))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finalize();
  return pack;
}

void Plan::run(cudnnHandle_t handle, const Pointers& pointers, std::int64_t part, void* workspace) const {
  const Descriptor pack = variant_pack(pointers, part, workspace);
  check(library()->execute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
}

std::optional<Plan> find_plan(const Graph& graph, const Target& target, std::int64_t least, std::int64_t most) {
  const Descriptor operations = lowered(graph, target.handle);
  for (const Descriptor& proposal : proposals(operations, target))
    if (auto plan = plan_of(graph, proposal, target, least, most)) return plan;
  return std::nullopt;
}

std::optional<Plan> find_ordered_plan(const Graph& graph, const Target& target, std::int64_t most) {
  constexpr std::size_t first_version = 91800, end_version = 92300;  // later releases name these knobs in another way
  constexpr std::int64_t engine = 5;
  constexpr Knob knobs[] = {{CUDNN_KNOB_TYPE_KERNEL_CFG, 31}, {CUDNN_KNOB_TYPE_STAGES, 2}};
  if (library()->version() < first_version || library()->version() >= end_version) return std::nullopt;
  const auto chosen = configuration(lowered(graph, target.handle), target, engine, knobs);
  return chosen ? plan_of(graph, *chosen, target, 0, most) : std::nullopt;
}

}  // namespace foreshard::kernels::cuda::cudnn
