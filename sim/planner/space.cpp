#include "sim/planner/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace foreshard::sim::planner {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Keep;
using plan::Recompute;

/// Goes through an axis: every value in turn is put into `member` of a point on its way down the list of axes.
class Enumeration {
 public:
  Enumeration(const Axes& axes, std::int64_t global_batch) : axes_(axes), global_batch_(global_batch) {}

  std::vector<Point> run() {
    for (const int gpus : axes_.gpus)
      if (global_batch_ % gpus == 0) meshes(gpus);
    return std::move(points_);
  }

 private:
  void meshes(int gpus) {
    for (const Strategy strategy : axes_.strategies) {
      Point p{.runtime = axes_.runtime,
              .gpus = gpus,
              .strategy = strategy,
              .shard_degree = strategy == Strategy::no_shard ? 1 : gpus};
      if (!is_hybrid(strategy)) {
        resharded(p);
        continue;
      }
      for (const int degree : axes_.shard_degrees)
        if (gpus % degree == 0) p.shard_degree = degree, resharded(p);
    }
  }

  void resharded(Point p) {
    for (const int neighbours : axes_.reshard) {
      const bool fits = neighbours == 0 || (keep_of(p.strategy) == Keep::visit && neighbours < p.shard_degree &&
                                            p.shard_degree % neighbours == 0);
      if (fits) p.reshard = neighbours, batches(p);
    }
  }

  void batches(Point p) {
    for (const std::int64_t rows : axes_.local_batches) {
      if (global_batch_ / p.gpus % rows != 0 || global_batch_ / p.gpus / rows >= plan::unlimited) continue;
      p.local_batch = rows;
      p.micro_batches = static_cast<int>(global_batch_ / p.gpus / rows);
      accumulated(p);
    }
  }

  /// One micro-batch has nothing to add up; ZeRO-1 adds up unsharded gradients in any case.
  void accumulated(Point p) {
    const bool has_choice = p.micro_batches > 1 && p.strategy != Strategy::zero1;
    for (const Accumulation accumulation : axes_.accumulation) {
      if (accumulation == Accumulation::reduce_scatter && !is_hybrid(p.strategy)) continue;
      p.accumulation = has_choice ? accumulation : Accumulation::reduce;
      stored(p);
      if (!has_choice) return;
    }
  }

  void stored(Point p) {
    for (const Recompute::Mode mode : axes_.recompute)
      for (const int every : axes_.recompute_every)
        for (const auto& [parameters, reduction] : axes_.precision)
          for (const plan::Offload& offload : axes_.offload) {
            p.recompute = mode, p.recompute_every = every;
            p.parameters = parameters, p.reduction = reduction, p.offload = offload;
            if (mode != Recompute::Mode::none || every == axes_.recompute_every.front()) overlapped(p);
          }
  }

  void overlapped(Point p) {
    for (const BackwardPrefetch prefetch : axes_.prefetch)
      for (const int depth : axes_.prefetch_depth)
        for (const int forward : axes_.forward_prefetch)
          for (const int limit : axes_.limit)
            for (const int reduce_limit : axes_.reduce_limit) {
              p.prefetch = prefetch, p.prefetch_depth = depth, p.forward_prefetch = forward;
              p.limit = limit, p.reduce_limit = reduce_limit;
              if (prefetch == BackwardPrefetch::pre || depth == axes_.prefetch_depth.front()) points_.push_back(p);
            }
  }

  const Axes& axes_;
  std::int64_t global_batch_;
  std::vector<Point> points_;
};

/// Of equal plans the first one, in order.
std::vector<Point> without_repetitions(std::vector<Point> all) {
  std::vector<std::pair<Point, std::size_t>> by_plan;
  for (std::size_t i = 0; i < all.size(); ++i) by_plan.emplace_back(canonical(all[i]), i);
  std::ranges::sort(by_plan);
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < by_plan.size(); ++i)
    if (i == 0 || !(by_plan[i].first == by_plan[i - 1].first)) first.push_back(by_plan[i].second);
  std::ranges::sort(first);
  std::vector<Point> points;
  for (const std::size_t i : first) points.push_back(all[i]);
  return points;
}

std::int64_t multiple_above(std::int64_t value, std::int64_t of) { return (value / of + 1) * of; }

std::vector<std::string> unfit_values(const Axes& axes, std::int64_t global_batch) {
  std::vector<std::string> unfit;
  for (const int gpus : axes.gpus)
    if (global_batch % gpus != 0)
      unfit.push_back(fmt::format("{} GPUs: a step of {} sequences cannot be dealt to them evenly; nearest: {}{}", gpus,
                                  global_batch,
                                  global_batch > gpus ? fmt::format("{} or ", global_batch / gpus * gpus) : "",
                                  multiple_above(global_batch, gpus)));
  for (const std::int64_t rows : axes.local_batches)
    if (std::ranges::none_of(axes.gpus, [&](int gpus) { return global_batch % (gpus * rows) == 0; }))
      unfit.push_back(fmt::format("micro-batches of {}: a step of {} sequences is no multiple of that on {} GPUs", rows,
                                  global_batch, fmt::join(axes.gpus, ", ")));
  for (const int degree : axes.shard_degrees)
    if (std::ranges::none_of(axes.gpus, [&](int gpus) { return gpus % degree == 0; }))
      unfit.push_back(fmt::format("shards over {} GPUs: no divisor of {}", degree, fmt::join(axes.gpus, ", ")));
  return unfit;
}

}  // namespace

Space space_of(const Axes& axes, std::int64_t global_batch, bool alike) {
  Space space{.points = Enumeration(axes, global_batch).run(), .left_out = unfit_values(axes, global_batch)};
  space.combinations = static_cast<std::int64_t>(space.points.size());
  if (alike) space.points = without_repetitions(std::move(space.points));
  return space;
}

Space joined(std::vector<Space> spaces) {
  Space all;
  for (Space& space : spaces) {
    all.combinations += space.combinations;
    std::ranges::move(space.points, std::back_inserter(all.points));
    for (std::string& value : space.left_out)
      if (std::ranges::find(all.left_out, value) == all.left_out.end()) all.left_out.push_back(std::move(value));
  }
  return all;
}

}  // namespace foreshard::sim::planner
