#include "engine/stall.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"

namespace foreshard::engine {
namespace {

constexpr std::size_t most_lines = 16;  // of ranks; a node may have hundreds

template <class Predicate>
std::vector<std::size_t> positions(std::span<const Watched> ranks, Predicate predicate) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (predicate(ranks[i])) found.push_back(i);
  return found;
}

std::uint64_t ops_ended(const Watched& rank) { return rank.seen.ops_ended(); }

std::int64_t whole_bytes(const plan::Plan& plan, const plan::Op& op) {
  std::int64_t bytes = 0;
  for (const auto operands : {plan.inputs(op), plan.outputs(op)})
    for (const plan::Operand& operand : operands) bytes = std::max(bytes, operand.size_bytes);
  return bytes;
}

std::string op_text(const plan::Plan& plan, const plan::Op& op) {
  const std::string size = op.group == plan::GroupKind::none ? "" : ", " + bytes_text(whole_bytes(plan, op));
  return plan::name_of(plan, op) + size;
}

/// Which part of the step an op of `seen` belongs to.
std::string part_text(const plan::Plan& plan, const Sighting::LaneSighting& seen) {
  const auto holds = [&](const plan::Segment& s) { return seen.op >= s.first_op && seen.op - s.first_op < s.op_count; };
  const auto segment = std::ranges::find_if(plan.segments, holds);
  if (segment == plan.segments.end() || segment->name == plan::Segment::Name::update) return "update";
  return fmt::format("micro-batch {}", seen.micro_batch);
}

std::string lane_text(plan::Lane lane, const Sighting::LaneSighting& seen, const plan::Plan& plan) {
  if (seen.op >= plan.ops.size()) return "";
  return fmt::format("; {} {} {}, {}", plan::name_of(lane), seen.busy() ? "is in" : "finished",
                     op_text(plan, plan.ops[seen.op]), part_text(plan, seen));
}

std::string late_text(const Watched& rank, double silent_s) {
  const std::string who = fmt::format("rank {} (process {})", rank.seen.rank, rank.seen.process);
  if (rank.silent_s >= silent_s)
    return fmt::format("{} is stopped or dead: no sign of life for {}", who, duration_text(rank.silent_s));
  return fmt::format("{} is behind: alive, but at the same place for {}", who, duration_text(rank.quiet_s));
}

std::string nobody_text(bool whole_world) {
  return whole_world ? "no rank is behind: all wait for each other"
                     : "no rank of this node is behind: see what those of the other nodes say";
}

}  // namespace

std::vector<std::size_t> late_ranks(std::span<const Watched> ranks, double silent_s) {
  const auto silent = positions(ranks, [&](const Watched& rank) { return rank.silent_s >= silent_s; });
  if (!silent.empty()) return silent;
  const auto [least, most] = std::ranges::minmax(ranks, {}, ops_ended);
  if (ops_ended(least) == ops_ended(most)) return {};
  return positions(ranks, [&](const Watched& rank) { return ops_ended(rank) == ops_ended(least); });
}

std::string work_text(const Sighting& rank, const WatchedPlans& plans) {
  const plan::Plan& plan = plans(rank.step);
  if (rank.ops_ended() == 0 && !rank.running)
    return fmt::format("before the first step{}", rank.pausing ? ", starting" : "");
  std::string text = fmt::format("{}{}",
                                 rank.pausing   ? "saving after "
                                 : rank.running ? "in "
                                                : "after ",
                                 rank.step > 0 ? fmt::format("step {}", rank.step) : "an evaluation");
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    const Sighting::LaneSighting& seen = rank.lanes[static_cast<std::size_t>(lane)];
    if (seen.entered > 0) text += lane_text(static_cast<plan::Lane>(lane), seen, plan);
  }
  return text;
}

std::string stall_text(std::span<const Watched> ranks, double silent_s, const WatchedPlans& plans, bool whole_world) {
  const std::vector<std::size_t> late = late_ranks(ranks, silent_s);
  std::string text = late.empty() ? nobody_text(whole_world) : "";
  for (const std::size_t position : late) text += (text.empty() ? "" : "\n") + late_text(ranks[position], silent_s);
  for (const Watched& rank : ranks.first(std::min(ranks.size(), most_lines)))
    text += fmt::format("\nrank {}: {}", rank.seen.rank, work_text(rank.seen, plans));
  if (ranks.size() > most_lines) text += fmt::format("\n… and {} more ranks of this node", ranks.size() - most_lines);
  return text;
}

}  // namespace foreshard::engine
