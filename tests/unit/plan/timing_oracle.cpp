#include "timing_oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace foreshard::plan {

TimingOracle::TimingOracle(const Plan& plan, int steps) : plan_(plan) {
  for (int step = 0; step < steps; ++step) {
    step_begin_ = instances_.size();
    for (const Segment* segment : plan.sequence()) append_run(*segment);
  }
}

void TimingOracle::append_run(const Segment& segment) {
  const std::size_t begin = instances_.size();
  const int run = static_cast<int>(runs_.size());
  for (std::uint32_t id = segment.first_op; id < segment.first_op + segment.op_count; ++id) {
    const Op& op = plan_.ops[id];
    instances_.push_back({{id}, run});
    before_.emplace_back();
    const std::size_t current = instances_.size() - 1;
    for (std::size_t i = 0; i < step_begin_; ++i) add_predecessor(current, i);  // a step begins when the last has ended
    for (std::size_t i = current; i-- > 0;)
      if (plan_.ops[instances_[i].op.value].lane == op.lane) {
        add_predecessor(current, i);
        break;
      }
    for (const Wait& wait : plan_.waits_of(op)) {
      if (wait.on == Wait::On::op) add_predecessor(current, begin + (wait.index - segment.first_op));
      if (wait.on == Wait::On::op || run == 0) continue;
      const Segment& previous = *runs_.back();
      const OpId point = previous.points[static_cast<std::size_t>(wait.on) - 1][wait.index];
      if (point.valid()) add_predecessor(current, run_begin_.back() + (point.value - previous.first_op));
    }
  }
  run_begin_.push_back(begin);
  runs_.push_back(&segment);
}

void TimingOracle::add_predecessor(std::size_t op, std::size_t predecessor) {
  auto& mine = before_[op];
  const auto& theirs = before_[predecessor];
  mine.resize(std::max({mine.size(), theirs.size(), predecessor / 64 + 1, instances_.size() / 64 + 1}));
  for (std::size_t word = 0; word < theirs.size(); ++word) mine[word] |= theirs[word];
  mine[predecessor / 64] |= std::uint64_t{1} << (predecessor % 64);
}

bool TimingOracle::goes_on(const Op& op, const Operand& operand) const {
  const bool gradient = plan_.buffers[operand.buffer.value].memory == MemoryClass::unsharded_gradients;
  return !operand.written || (op.accumulate && gradient);
}

/// A run of a segment that reads a buffer or adds to it before it writes it goes on with what was there; any other
/// begins a new life.
std::vector<TimingOracle::Life> TimingOracle::lives() const {
  std::vector<Life> all;
  std::map<std::pair<std::uint32_t, int>, std::size_t> of_run;  // buffer, run -> life
  std::map<std::uint32_t, std::size_t> latest;
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    const Op& op = plan_.ops[instances_[i].op.value];
    for (const Operand& operand :
         std::span(plan_.operands).subspan(op.first_operand, op.input_count + op.output_count)) {
      if (!operand.present()) continue;
      const std::uint32_t buffer = operand.buffer.value;
      const bool persistent = plan_.buffers[buffer].persistent;
      const std::pair key{buffer, persistent ? 0 : instances_[i].segment_run};
      if (!of_run.contains(key)) {
        const bool continues = goes_on(op, operand) && latest.contains(buffer);
        if (!continues) all.push_back({{buffer}, {}});
        of_run[key] = latest[buffer] = continues ? latest[buffer] : all.size() - 1;
      }
      all[of_run[key]].users.push_back(i);
    }
  }
  return all;
}

bool TimingOracle::all_precede(const Life& a, const Life& b) const {
  return std::ranges::all_of(b.users, [&](std::size_t user) {
    return std::ranges::all_of(a.users, [&](std::size_t other) { return precedes(other, user); });
  });
}

std::vector<std::string> TimingOracle::overlaps() const {
  const std::vector<Life> all = lives();
  std::vector<std::string> found;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const Buffer &a = plan_.buffers[all[i].buffer.value], &b = plan_.buffers[all[j].buffer.value];
      const bool share = a.space == b.space && a.offset_bytes < b.offset_bytes + b.size_bytes &&
                         b.offset_bytes < a.offset_bytes + a.size_bytes;
      if (share && !all_precede(all[i], all[j]) && !all_precede(all[j], all[i]))
        found.push_back(fmt::format("buffers {} and {}, first used by ops {} and {}", all[i].buffer.value,
                                    all[j].buffer.value, instances_[all[i].users.front()].op.value,
                                    instances_[all[j].users.front()].op.value));
    }
  return found;
}

std::vector<std::vector<TimingOracle::Access>> TimingOracle::accesses() const {
  std::vector<std::vector<Access>> of_buffer(plan_.buffers.size());
  for (std::size_t i = 0; i < instances_.size(); ++i) {
    const Op& op = plan_.ops[instances_[i].op.value];
    for (const Operand& operand : std::span(plan_.operands).subspan(op.first_operand, op.input_count + op.output_count))
      if (operand.present()) of_buffer[operand.buffer.value].push_back({i, operand});
  }
  return of_buffer;
}

std::vector<std::string> TimingOracle::hazards() const {
  const auto touches = [](const Operand& a, const Operand& b) {
    return a.offset_bytes < b.offset_bytes + b.size_bytes && b.offset_bytes < a.offset_bytes + a.size_bytes;
  };
  std::vector<std::string> found;
  for (const auto& of_buffer : accesses())
    for (std::size_t later = 0; later < of_buffer.size(); ++later)
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const Access &a = of_buffer[earlier], &b = of_buffer[later];
        const bool ordered = a.instance == b.instance || precedes(a.instance, b.instance);
        if (!ordered && (a.operand.written || b.operand.written) && touches(a.operand, b.operand))
          found.push_back(fmt::format("ops {} and {} on buffer {}", instances_[a.instance].op.value,
                                      instances_[b.instance].op.value, a.operand.buffer.value));
      }
  return found;
}

}  // namespace foreshard::plan
