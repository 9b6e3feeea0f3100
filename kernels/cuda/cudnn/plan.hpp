#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "kernels/cuda/cudnn/descriptor.hpp"
#include "kernels/cuda/cudnn/graph.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// What plans are made for: a handle's device, or one of which only the properties are there.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;  ///< if there is no handle
};

/// Where operands begin, by their number.
using Pointers = std::array<std::byte*, 10>;

/// A graph that cuDNN has a kernel for.
class Plan {
 public:
  Plan(Graph graph, Descriptor plan) : graph_(std::move(graph)), plan_(std::move(plan)) {}

  std::int64_t workspace_bytes() const { return plan_.value<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE); }

  /// Queues it on the handle's stream, for the part-th of the parts of a batch of which the graph describes one.
  void run(cudnnHandle_t, const Pointers&, std::int64_t part, void* workspace) const;

 private:
  void* data_of(const Tensor&, const Pointers&, std::int64_t part) const;
  Descriptor variant_pack(const Pointers&, std::int64_t part, void* workspace) const;

  Graph graph_;
  Descriptor plan_;
};

/// The first plan that cuDNN proposes whose workspace is of `least` to `most` bytes.
std::optional<Plan> find_plan(const Graph&, const Target&, std::int64_t least, std::int64_t most);

/// The plan of a backward graph on Blackwell that adds up dq in a fixed order and stores no gradient of scores, if it
/// is there and its workspace is of at most `most` bytes: cuDNN proposes it to nobody, and cudnn_frontend asks for it
/// by the same number and knobs.
std::optional<Plan> find_ordered_plan(const Graph&, const Target&, std::int64_t most);

}  // namespace foreshard::kernels::cuda::cudnn
