#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace foreshard::sim::planner {

/// What a plan is judged by; less is better in each.
struct Cost {
  double seconds = 0;
  std::int64_t memory_bytes = 0;
  int gpus = 1;
};

/// True if `a` is no worse than `b` in anything, when a's seconds and bytes count only `part` of what they are.
bool is_as_good(const Cost& a, const Cost& b, double part = 1);

/// The Pareto front of costs that come one by one: those that no other is as good as. Of equal ones the first stays.
class Front {
 public:
  void add(const Cost& cost, std::size_t index);
  /// The index of a member that is as good as `cost`, see `is_as_good`.
  std::optional<std::size_t> as_good_as(const Cost& cost, double part) const;
  /// Indices of the members by seconds, then bytes, then GPUs.
  std::vector<std::size_t> members() const;

 private:
  struct Member {
    Cost cost;
    std::size_t index;
  };
  std::vector<Member> members_;
};

}  // namespace foreshard::sim::planner
