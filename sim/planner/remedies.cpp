#include "sim/planner/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Recompute;

constexpr int most_changes = 3;
constexpr std::size_t most_simulated = 24, most_shown = 4;

/// Collects variations of a point that are other plans than it.
class Variations {
 public:
  explicit Variations(const Point& from) : from_(from) {}

  template <class Change>
  void add(bool applies, Change change) {
    Point point = from_;
    if (applies) change(point);
    if (exists(point) && !(canonical(point) == canonical(from_))) all_.push_back(point);
  }
  std::vector<Point> take() { return std::move(all_); }

 private:
  Point from_;
  std::vector<Point> all_;
};

/// The smallest factor above 1.
std::int64_t least_factor(std::int64_t number) {
  for (std::int64_t d = 2; d * d <= number; ++d)
    if (number % d == 0) return d;
  return number;
}

void shard_fully(Point& p) {
  p.strategy = Strategy::full_shard;
  p.shard_degree = p.gpus;
}

/// The same global batch on twice the GPUs; as it was if it cannot be dealt to them.
void double_gpus(Point& p) {
  if (p.micro_batches % 2 == 0)
    p.micro_batches /= 2;
  else if (p.local_batch % 2 == 0)
    p.local_batch /= 2;
  else
    return;
  p.gpus *= 2;
  if (!is_hybrid(p.strategy) && p.strategy != Strategy::no_shard) p.shard_degree = p.gpus;
}

}  // namespace

std::string changes(const Point& from, const Point& to) {
  const KeyValues before = keys_of(from), after = keys_of(to);
  const bool deals_anew = from.gpus != to.gpus || from.local_batch != to.local_batch;
  std::string text;
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[i] != before[i] || (deals_anew && after[i].first == "train.global_batch_size"))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", after[i].first, after[i].second);
  return text;
}

std::vector<Point> thriftier(const Point& p, int most_gpus) {
  Variations all(p);
  all.add(p.recompute != Recompute::Mode::full,
          [](Point& q) { q.recompute = Recompute::Mode::full, q.recompute_every = 1; });
  all.add(p.recompute == Recompute::Mode::none, [](Point& q) { q.recompute = Recompute::Mode::selective; });
  all.add(p.recompute_every > 1, [](Point& q) { q.recompute_every = 1; });
  const std::int64_t factor = least_factor(p.local_batch);
  all.add(factor > 1, [&](Point& q) { q.local_batch /= factor, q.micro_batches *= static_cast<int>(factor); });
  all.add(p.strategy != Strategy::full_shard, shard_fully);
  all.add(is_hybrid(p.strategy) && p.gpus > 2 * p.shard_degree && p.gpus % (2 * p.shard_degree) == 0,
          [](Point& q) { q.shard_degree *= 2; });
  all.add(p.reshard > 0, [](Point& q) { q.reshard = 0; });
  all.add(p.parameters == DType::f32, [](Point& q) { q.parameters = DType::bf16; });
  all.add(p.parameters != DType::f32, [](Point& q) { q.reduction = q.parameters; });
  all.add(true, [](Point& q) { q.accumulation = plan::Accumulation::reduce; });
  all.add(true, [](Point& q) { q.limit = 1; });
  all.add(true, [](Point& q) { q.reduce_limit = 1; });
  all.add(true, [](Point& q) { q.offload.optimizer = true; });
  all.add(true, [](Point& q) { q.offload = {true, true, true}; });
  all.add(p.gpus < (1 << 20) && (most_gpus == 0 || 2 * p.gpus <= most_gpus), double_gpus);
  return all.take();
}

std::vector<Point> faster(const Point& p, int gpus_per_node) {
  Variations all(p);
  all.add(p.recompute != Recompute::Mode::none, [](Point& q) { q.recompute = Recompute::Mode::none; });
  all.add(p.recompute == Recompute::Mode::full, [](Point& q) { q.recompute_every *= 2; });
  all.add(p.recompute == Recompute::Mode::full, [](Point& q) { q.recompute = Recompute::Mode::selective; });
  const std::int64_t factor = least_factor(p.micro_batches);
  all.add(factor > 1, [&](Point& q) { q.local_batch *= factor, q.micro_batches /= static_cast<int>(factor); });
  all.add(p.prefetch != plan::BackwardPrefetch::pre, [](Point& q) { q.prefetch = plan::BackwardPrefetch::pre; });
  all.add(p.limit < plan::unlimited, [](Point& q) { ++q.limit, ++q.prefetch_depth, ++q.forward_prefetch; });
  all.add(p.reduce_limit == 1, [](Point& q) { q.reduce_limit = 2; });
  all.add(p.parameters == DType::f32, [](Point& q) { q.parameters = DType::bf16; });
  all.add(p.parameters != DType::f32, [](Point& q) { q.reduction = q.parameters; });
  all.add(p.strategy == Strategy::full_shard, [](Point& q) { q.strategy = Strategy::shard_grad_op, q.reshard = 0; });
  all.add(p.strategy == Strategy::hybrid_shard,
          [](Point& q) { q.strategy = Strategy::hybrid_shard_grad_op, q.reshard = 0; });
  all.add(p.gpus > gpus_per_node && p.gpus % gpus_per_node == 0 && keep_of(p.strategy) == plan::Keep::visit,
          [&](Point& q) { q.strategy = Strategy::hybrid_shard, q.shard_degree = gpus_per_node, q.reshard = 0; });
  all.add(p.offload.parameters || p.offload.gradients || p.offload.optimizer, [](Point& q) { q.offload = {}; });
  return all.take();
}

std::vector<Remedy> remedies(const Point& point, std::int64_t memory_bytes, int most_gpus, Evaluator& evaluator) {
  std::vector<Point> reached{point};
  for (int changed = 1; changed <= most_changes; ++changed) {
    std::vector<Point> next;
    for (const Point& from : reached)
      for (const Point& to : thriftier(from, most_gpus)) next.push_back(to);
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    reached = next;
    std::vector<std::pair<Bound, Point>> possible;
    for (const Point& to : next)
      if (const Bound bound = evaluator.bound(to); bound.memory_bytes <= memory_bytes) possible.emplace_back(bound, to);
    std::ranges::stable_sort(possible, {}, [](const auto& entry) { return entry.first.seconds; });
    if (possible.size() > most_simulated) possible.resize(most_simulated);
    std::vector<Remedy> found;
    for (const auto& [bound, to] : possible)
      if (const Evaluation e = evaluator.evaluate(to); e.memory_bytes <= memory_bytes) found.push_back({to, e});
    std::ranges::stable_sort(
        found, {}, [](const Remedy& remedy) { return std::pair(remedy.found.retries > 0, remedy.found.step_s); });
    if (!found.empty()) return found;
  }
  return {};
}

std::string text_of(const Point& point, const Remedy& remedy) {
  const Evaluation& found = remedy.found;
  const std::string retries =
      found.retries > 0 ? fmt::format("; only with {} allocation retries a step", found.retries) : "";
  return fmt::format("{} ({}, {} a step{})", changes(point, remedy.point), bytes_text(found.memory_bytes),
                     duration_text(found.step_s), retries);
}

namespace {

/// What a runtime never shards is beyond what its own keys can change.
std::string other_runtime(const Point& point) {
  const auto hint = [&](std::string_view whole) {
    return fmt::format("\n  {} keeps {} whole on every GPU; runtime.profile=deepspeed-zero3 or pytorch-fsdp2 does not",
                       name_of(point.runtime), whole);
  };
  if (point.runtime == Runtime::ddp) return hint("parameters, gradients and optimizer state");
  if (point.runtime == Runtime::zero1) return hint("parameters and gradients");
  if (point.runtime == Runtime::zero2) return hint("parameters");
  return "";
}

InputError with_remedies(std::string text, const Point& point, const Cluster& cluster, Evaluator& evaluator) {
  const auto found = remedies(point, std::llround(cluster.device.memory_bytes.value), cluster.gpus, evaluator);
  if (found.empty())
    return {ExitCode::infeasible, text +
                                      "\n  no three changes make it fit: more GPUs with a larger global batch, a "
                                      "smaller model or shorter sequences would" +
                                      other_runtime(point)};
  text += "\n  it fits with";
  for (std::size_t i = 0; i < std::min(found.size(), most_shown); ++i)
    text += fmt::format("{}\n    {}", i > 0 ? ", or" : "", text_of(point, found[i]));
  return {ExitCode::infeasible, text + other_runtime(point)};
}

}  // namespace

InputError nothing_fits(const SearchResult& result, const SearchSubject& subject, Evaluator& evaluator) {
  const auto memory = std::llround(subject.cluster.device.memory_bytes.value);
  const Candidate& nearest = *result.nearest_miss();
  return with_remedies(fmt::format("none of {} plans fits into {} of a GPU\n  the one that lacks least {}:\n    {}",
                                   count_text(static_cast<std::int64_t>(result.candidates.size())), bytes_text(memory),
                                   reason_of(result, nearest, memory), command_of(nearest.point, subject.config)),
                       nearest.point, subject.cluster, evaluator);
}

InputError does_not_fit(const std::string& what, const Point& point, const Cluster& cluster, Evaluator& evaluator) {
  return with_remedies(fmt::format("this plan does not fit: {}", what), point, cluster, evaluator);
}

}  // namespace foreshard::sim::planner
