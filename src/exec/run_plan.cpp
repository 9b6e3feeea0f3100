#include "exec/run_plan.hpp"

#include <vector>

namespace foreshard::exec {
namespace {

using plan::Op;
using plan::Segment;
using plan::Wait;

/// The tickets of one issued segment, by position of the op in it.
struct Issued {
  const Segment* segment = nullptr;
  std::vector<Ticket> tickets;

  Ticket of(plan::OpId op) const { return tickets[op.value - segment->first_op]; }
  Ticket at(Wait::On point, std::uint32_t unit) const {
    if (!segment) return {};
    const auto& ops = segment->points[static_cast<std::size_t>(point) - 1];
    return unit < ops.size() && ops[unit].valid() ? of(ops[unit]) : Ticket{};
  }
};

}  // namespace

void run_plan(const plan::Plan& plan, Executor& executor) {
  Issued before, now;
  std::vector<Ticket> waits;
  int micro_batch = 0;
  for (const Segment* segment : plan.sequence()) {
    now.segment = segment;
    now.tickets.clear();
    for (const Op& op : plan.ops_of(*segment)) {
      waits.clear();
      for (const Wait& wait : plan.waits_of(op))
        waits.push_back(wait.on == Wait::On::op ? now.of({wait.index}) : before.at(wait.on, wait.index));
      now.tickets.push_back(executor.issue({&op, micro_batch}, waits));
    }
    std::swap(before, now);
    ++micro_batch;
  }
  executor.finish();
}

}  // namespace foreshard::exec
