#include "combinations.hpp"

#include <map>

#include "families.hpp"

namespace foreshard::parity {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Keep;
using plan::Mesh;
using plan::Wrap;
using Mode = plan::Recompute::Mode;
using Policy = Wrap::Policy;

constexpr std::int64_t rows = 48;

struct Steps {
  int micro_batches;
  Accumulation accumulation;
};
struct Ahead {
  BackwardPrefetch backward;
  int backward_depth, forward_depth;
};
struct Limits {
  int gathers, reductions;
  std::int64_t bytes = INT64_MAX;
};

const std::vector<Mesh> meshes{{8, 1, 1}, {1, 1, 8}, {2, 1, 4}, {4, 1, 2}, {1, 2, 4}, {1, 4, 2}, {2, 2, 2}, {1, 8, 1}};
const std::vector<Keep> keeps{Keep::visit, Keep::micro_batch, Keep::step};
const std::vector<Steps> steps{{1, Accumulation::reduce},
                               {2, Accumulation::reduce},
                               {3, Accumulation::reduce},
                               {2, Accumulation::reduce_scatter},
                               {3, Accumulation::no_sync}};
const std::vector<Ahead> aheads{{BackwardPrefetch::none, 1, 0},
                                {BackwardPrefetch::post, 1, 1},
                                {BackwardPrefetch::pre, 1, 1},
                                {BackwardPrefetch::pre, 3, 2}};
const std::vector<Limits> limits{{1, 1}, {2, 2}, {plan::unlimited, plan::unlimited}, {plan::unlimited, 1, 10'000}};
const std::vector<plan::Recompute> recomputes{
    {}, {.mode = Mode::selective}, {.mode = Mode::full}, {.mode = Mode::full, .every = 2}};
/// With parameters kept in the models' type, or in bf16.
struct Types {
  plan::Precision precision;
  std::optional<DType> master;
};
const std::vector<Types> precisions{{},
                                    {{.parameters = DType::bf16}},
                                    {{.parameters = DType::bf16, .reduction = DType::bf16}},
                                    {{.parameters = DType::bf16, .output = DType::f32}},
                                    {{.parameters = DType::f16}},
                                    {{.parameters = DType::bf16}, DType::bf16}};
const std::vector<plan::Offload> offloads{
    {}, {.parameters = true}, {.gradients = true}, {.optimizer = true}, {true, true, true}};
const std::vector<Wrap> wraps{
    {}, {.policy = Policy::blocks, .count = 2}, {.policy = Policy::size, .count = 500}, {.policy = Policy::none}};

/// Each family once, without what is nothing but noise.
const std::vector<Family> models = [] {
  std::vector<Family> all = families();
  std::erase_if(all, [](const Family& family) { return family.name == "lora"; });
  for (Family& family : all)
    if (auto* vit = std::get_if<model::VitConfig>(&family.model)) vit->qkv_bias = false;
  return all;
}();

const std::vector<std::size_t> sizes{meshes.size(), keeps.size(),      steps.size(),      aheads.size(),
                                     limits.size(), recomputes.size(), precisions.size(), offloads.size(),
                                     wraps.size(),  models.size()};

RunSetup setup_of(const Mesh& mesh, int micro_batches, std::size_t of_model) {
  const Family& family = models[of_model];
  model::Config model = family.model;
  if (auto* gpt = std::get_if<model::GptConfig>(&model))
    gpt->dropout =
        micro_batches == 1 ? 0.1 : 0;  // a row's mask depends on its micro-batch, which differs between worlds
  RunSetup setup{.settings = settings_of(model, family.seq, rows, mesh, micro_batches)};
  setup.learning_rates = {1e-2, 1e-2, 1e-2};
  setup.batch = [&family](std::int64_t step) { return family.batch(rows, step); };
  return setup;
}

const Outcome& one_rank(int micro_batches, std::size_t model) {
  static std::map<std::pair<int, std::size_t>, Outcome> outcomes;
  const std::pair key{micro_batches, model};
  if (!outcomes.contains(key)) outcomes[key] = run(setup_of(Mesh{}, micro_batches, model));
  return outcomes[key];
}

}  // namespace

const std::vector<std::size_t>& choices() { return sizes; }

const std::vector<Combination>& combinations() {
  static const auto cover = pairwise_cover(sizes);
  return cover;
}

bool is_mixed(const Combination& c) { return precisions[c[6]].precision.parameters.has_value(); }

RunSetup setup_of(const Combination& c) { return setup_of(c, meshes[c[0]]); }

RunSetup setup_of(const Combination& c, const Mesh& mesh) {
  const Steps& step = steps[c[2]];
  RunSetup setup = setup_of(mesh, step.micro_batches, c[9]);
  setup.settings.schedule = {.wrap = wraps[c[8]],
                             .keep = keeps[c[1]],
                             .accumulation = step.accumulation,
                             .prefetch = aheads[c[3]].backward,
                             .prefetch_depth = aheads[c[3]].backward_depth,
                             .forward_prefetch = aheads[c[3]].forward_depth,
                             .gather_limit = limits[c[4]].gathers,
                             .gather_limit_bytes = limits[c[4]].bytes,
                             .reduce_limit = limits[c[4]].reductions,
                             .micro_batches = step.micro_batches,
                             .recompute = recomputes[c[5]],
                             .offload = offloads[c[7]],
                             .precision = precisions[c[6]].precision,
                             .master = precisions[c[6]].master};
  if (is_mixed(c)) setup.dtype = DType::f32, setup.reference = false;
  return setup;
}

const Outcome& one_rank(const Combination& c) { return one_rank(steps[c[2]].micro_batches, c[9]); }

std::string text_of(const Combination& c) {
  std::string text = "mesh, keep, steps, prefetch, limits, recompute, precision, offload, units, model:";
  for (const std::size_t value : c) text += " " + std::to_string(value);
  return text;
}

}  // namespace foreshard::parity
