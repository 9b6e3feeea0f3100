#include "sim/planner/usual_axes.hpp"

#include <algorithm>

namespace foreshard::sim::planner {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Recompute;

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) found.push_back(d);
  return found;
}

constexpr std::int64_t most_rows = 64;

/// What is gone through unless a list or the plan's own key says otherwise; numbers of GPUs and batches not among them.
Axes usual_axes(int gpus_per_node) {
  using Mode = Recompute::Mode;
  return {.strategies = {Strategy::full_shard, Strategy::shard_grad_op, Strategy::hybrid_shard,
                         Strategy::hybrid_shard_grad_op, Strategy::zero1, Strategy::no_shard},
          .reshard = {0, gpus_per_node},
          .accumulation = {Accumulation::reduce, Accumulation::no_sync, Accumulation::reduce_scatter},
          .recompute = {Mode::none, Mode::selective, Mode::full},
          .recompute_every = {1, 2},
          .precision = {{DType::bf16, DType::f32}, {DType::bf16, DType::bf16}},
          .offload = {{}, {.optimizer = true}, {true, true, true}},
          .prefetch = {BackwardPrefetch::pre, BackwardPrefetch::post, BackwardPrefetch::none},
          .prefetch_depth = {1, 2},
          .forward_prefetch = {1, 0, 2},
          .limit = {2, 3, plan::unlimited},
          .reduce_limit = {2, 1}};
}

/// Those that DDP and ZeRO have: DDP reduces in fp32, ZeRO in every micro-batch or none.
Axes usual_axes_without_units(Axes usual) {
  const bool ddp = usual.runtime == Runtime::ddp;
  usual.strategies = {*only_strategy(usual.runtime)};
  usual.accumulation = {Accumulation::reduce};
  if (ddp) usual.accumulation.push_back(Accumulation::no_sync);
  if (ddp) usual.precision = {{DType::bf16, DType::f32}};
  usual.prefetch = {BackwardPrefetch::pre};
  usual.prefetch_depth = usual.forward_prefetch = {1}, usual.limit = {2};
  return usual;
}

}  // namespace

Axes usual_axes_of(Runtime runtime, int gpus_per_node) {
  Axes usual = usual_axes(gpus_per_node);
  usual.runtime = runtime;
  if (runtime == Runtime::own) return usual;
  std::erase(usual.accumulation, Accumulation::reduce_scatter);
  std::erase(usual.recompute, Recompute::Mode::selective);
  usual.reshard = {0}, usual.recompute_every = {1}, usual.offload = {{}}, usual.reduce_limit = {2};
  if (only_strategy(runtime)) return usual_axes_without_units(usual);
  const bool fsdp1 = runtime == Runtime::fsdp1;
  std::erase_if(usual.strategies, [&](Strategy s) { return !exists({.runtime = runtime, .strategy = s}); });
  usual.prefetch_depth = fsdp1 ? std::vector{1} : std::vector{0, 1, 2};
  usual.forward_prefetch = fsdp1 ? std::vector{0, 1} : std::vector{0};
  usual.limit = fsdp1 ? std::vector{2, plan::unlimited} : std::vector{2};
  if (!fsdp1) usual.prefetch = {BackwardPrefetch::pre};
  return usual;
}

std::vector<int> usual_degrees(const std::vector<int>& gpus, int gpus_per_node) {
  std::vector<int> degrees;
  const int most = gpus.empty() ? 1 : *std::ranges::max_element(gpus);
  for (int degree = 2; degree < most; ++degree)
    if ((degree % gpus_per_node == 0 || gpus_per_node % degree == 0) &&
        std::ranges::any_of(gpus, [&](int world) { return world % degree == 0 && degree < world; }))
      degrees.push_back(degree);
  return degrees;
}

std::vector<std::int64_t> usual_batches(const std::vector<int>& gpus, std::int64_t global_batch) {
  std::vector<std::int64_t> rows;
  for (const int world : gpus)
    for (const std::int64_t d : divisors(global_batch / world, most_rows))
      if (global_batch % world == 0 && std::ranges::find(rows, d) == rows.end()) rows.push_back(d);
  std::ranges::sort(rows);
  return rows;
}

}  // namespace foreshard::sim::planner
