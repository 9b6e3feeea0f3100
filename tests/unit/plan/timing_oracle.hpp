#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace foreshard::plan {

/// What precedes what in whole steps, worked out the slow way: the sequence of segments is written out op by op, and
/// the set of predecessors of each op is collected. Shares nothing with plan::Order.
class TimingOracle {
 public:
  explicit TimingOracle(const Plan& plan, int steps = 2);

  struct Instance {
    OpId op;
    int segment_run;  ///< which run of a segment, from 0
  };
  const std::vector<Instance>& instances() const { return instances_; }
  bool precedes(std::size_t a, std::size_t b) const {
    return before_[b].size() > a / 64 && (before_[b][a / 64] >> (a % 64) & 1U) != 0;
  }

  /// A message for each pair of buffers that share bytes while both may be in use; empty if placement is right.
  std::vector<std::string> overlaps() const;

  /// A message for each pair of ops that touch the same bytes of a buffer, one of them writing, without the one that is
  /// issued first preceding the other; empty if the waits say all that the data asks for.
  std::vector<std::string> hazards() const;

 private:
  struct Life {
    BufferId buffer;
    std::vector<std::size_t> users;  ///< instances
  };
  void append_run(const Segment& segment);
  void add_predecessor(std::size_t op, std::size_t predecessor);
  struct Access {
    std::size_t instance;
    Operand operand;
  };
  std::vector<std::vector<Access>> accesses() const;
  bool goes_on(const Op& op, const Operand& operand) const;
  std::vector<Life> lives() const;
  bool all_precede(const Life& a, const Life& b) const;

  const Plan& plan_;
  std::vector<Instance> instances_;
  std::vector<std::vector<std::uint64_t>> before_;
  std::vector<std::size_t> run_begin_;
  std::size_t step_begin_ = 0;
  std::vector<const Segment*> runs_;
};

}  // namespace foreshard::plan
