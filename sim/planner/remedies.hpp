#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/planner/report_search.hpp"

namespace foreshard::sim::planner {

/// "key=value …" of the keys in which `to` is another plan than `from`; with the global batch where it is dealt
/// otherwise, since it follows from the local one unless it is given.
std::string changes(const Point& from, const Point& to);

/// Plans of the same global batch that differ from `point` by one decision, each of which may save memory: more
/// recomputation, smaller micro-batches, more sharding, narrower types, fewer units at once, offload, and twice the
/// GPUs where there are not more than `most_gpus` (0: any number).
std::vector<Point> thriftier(const Point& point, int most_gpus);

/// Likewise, where each may save time: less recomputation, larger micro-batches, more units at once, narrower types,
/// parameters kept until backward, and sharding within a node of `gpus_per_node`.
std::vector<Point> faster(const Point& point, int gpus_per_node);

/// A plan that fits where another does not.
struct Remedy {
  Point point;
  Evaluation found;
};

/// What differs from `point`, and what it then takes.
std::string text_of(const Point& point, const Remedy& remedy);

/// The fewest decisions (up to three) that make `point` fit into `memory_bytes`: plans of that many, those
/// without retries first, then the fastest; empty if there are none. The global batch stays.
std::vector<Remedy> remedies(const Point& point, std::int64_t memory_bytes, int most_gpus, Evaluator& evaluator);

/// Error (infeasible) of a search in which nothing fits: the plan that lacks least, and what would make it fit.
InputError nothing_fits(const SearchResult& result, const SearchSubject& subject, Evaluator& evaluator);

/// Error (infeasible) of one plan that does not fit: `what` it needs, and what would make it fit.
InputError does_not_fit(const std::string& what, const Point& point, const Cluster& cluster, Evaluator& evaluator);

}  // namespace foreshard::sim::planner
