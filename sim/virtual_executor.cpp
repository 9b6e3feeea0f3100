#include "sim/virtual_executor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace foreshard::sim {
namespace {

constexpr std::int64_t one = 1 << 16;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t part(double whole) { return std::llround(whole * one); }

/// Of an op that needs `amount` at full speed and may have `level`.
std::int64_t speed_at(std::int64_t level, std::int64_t amount) {
  return amount <= level ? one : std::max<std::int64_t>(1, level * one / amount);
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

VirtualExecutor::VirtualExecutor(const plan::Plan& plan, Estimate estimate, double cores, Handover handover,
                                 trace::Recorder& recorder, int sms)
    : plan_(plan),
      estimate_(std::move(estimate)),
      handover_(handover),
      recorder_(recorder),
      cores_(std::max<std::int64_t>(1, std::llround(cores * one))),
      sms_(sms) {}

exec::Ticket VirtualExecutor::issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) {
  LaneState& lane = lanes_[static_cast<std::size_t>(instance.op->lane)];
  Queued queued{instance, static_cast<std::uint32_t>(waits_.size()), 0};
  for (const exec::Ticket& wait : waits)
    if (!is_done(wait)) waits_.push_back(wait);
  queued.wait_count = static_cast<std::uint32_t>(waits_.size()) - queued.first_wait;
  lane.queue.push_back(queued);
  return {instance.op->lane, ++lane.issued};
}

void VirtualExecutor::finish() {
  for (admit(); has_work(); admit()) {
    set_speeds();
    const std::int64_t delta = time_to_next();
    FORESHARD_EXPECT(delta != never, "the plan's waits can never be met: no op can start");
    advance(delta);
  }
  for (LaneState& lane : lanes_) lane.queue.clear(), lane.head = 0;
  waits_.clear();
}

bool VirtualExecutor::is_done(const exec::Ticket& ticket) const {
  return lanes_[static_cast<std::size_t>(ticket.lane)].completed >= ticket.sequence;
}

bool VirtualExecutor::is_ready(const LaneState& lane) const {
  if (lane.state != State::idle || lane.head == lane.queue.size()) return false;
  const Queued& queued = lane.queue[lane.head];
  const auto first = waits_.begin() + queued.first_wait;
  return std::all_of(first, first + queued.wait_count, [&](const exec::Ticket& wait) { return is_done(wait); });
}

void VirtualExecutor::admit() {
  for (LaneState& lane : lanes_)
    if (is_ready(lane)) begin(lane);
}

void VirtualExecutor::begin(LaneState& lane) {
  const bool was_busy = lane.free_ns == now_ns_ && lane.completed > 0;
  lane.start_ns = now_ns_ + (was_busy ? handover_.next_ns : handover_.wake_ns);
  lane.state = State::handover;
  if (lane.start_ns == now_ns_) run_from_now(lane);
}

void VirtualExecutor::run_from_now(LaneState& lane) {
  const Demand demand = estimate_(*lane.queue[lane.head].instance.op);
  lane.state = State::running;
  lane.work = std::max<std::int64_t>(1, demand.duration_ns) * one;
  lane.core = {part(demand.core), demand.threads};
  lane.link = {part(demand.link), 1};
  lane.memory = {part(demand.memory), 1};
  lane.beside = std::max<std::int64_t>(1, part(demand.beside_compute));
  lane.held_sms = demand.held_sms;
  lane.blocks = demand.blocks;
}

std::int64_t VirtualExecutor::level_of(std::int64_t capacity, Need LaneState::*need) const {
  std::array<Need, plan::lane_count> needs;
  std::size_t count = 0;
  for (const LaneState& lane : lanes_)
    if (lane.state == State::running)
      needs[count++] = {(lane.*need).amount * speed_beside(lane) / one, (lane.*need).count};
  return fair_level(capacity, std::span(needs).first(count));
}

std::int64_t VirtualExecutor::held_sms() const {
  std::int64_t held = 0;
  for (const LaneState& lane : lanes_)
    if (lane.state == State::running) held += lane.held_sms;
  return held;
}

std::int64_t VirtualExecutor::speed_beside(const LaneState& lane) const {
  const LaneState& compute = lanes_[static_cast<std::size_t>(plan::Lane::compute)];
  return compute.state == State::running && &compute != &lane ? lane.beside : one;
}

std::int64_t VirtualExecutor::wave_speed(const LaneState& lane, std::int64_t held) const {
  if (lane.blocks == 0 || sms_ == 0) return one;
  const std::int64_t free = std::max<std::int64_t>(1, sms_ - (held - lane.held_sms));
  return divide_up(lane.blocks, sms_) * one / divide_up(lane.blocks, free);
}

void VirtualExecutor::set_speeds() {
  const std::int64_t core = level_of(cores_, &LaneState::core), link = level_of(one, &LaneState::link);
  const std::int64_t memory = level_of(one, &LaneState::memory), held = held_sms();
  for (LaneState& lane : lanes_)
    lane.speed = std::min({speed_at(core, lane.core.amount), speed_at(link, lane.link.amount),
                           speed_at(memory, lane.memory.amount), speed_beside(lane),
                           std::max<std::int64_t>(1, wave_speed(lane, held))});
}

std::int64_t VirtualExecutor::time_to_next() const {
  std::int64_t least = never;
  for (const LaneState& lane : lanes_) {
    if (lane.state == State::running) least = std::min(least, divide_up(lane.work, lane.speed));
    if (lane.state == State::handover) least = std::min(least, lane.start_ns - now_ns_);
  }
  return least;
}

void VirtualExecutor::advance(std::int64_t delta_ns) {
  now_ns_ += delta_ns;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    LaneState& lane = lanes_[i];
    if (lane.state == State::running && (lane.work -= delta_ns * lane.speed) <= 0)
      complete(static_cast<plan::Lane>(i), lane);
    else if (lane.state == State::handover && lane.start_ns == now_ns_)
      run_from_now(lane);
  }
}

void VirtualExecutor::complete(plan::Lane name, LaneState& lane) {
  const exec::Instance& instance = lane.queue[lane.head++].instance;
  recorder_.record(name, {.start_ns = lane.start_ns,
                          .duration_ns = now_ns_ - lane.start_ns,
                          .op = static_cast<std::uint32_t>(instance.op - plan_.ops.data()),
                          .step = step_,
                          .micro_batch = instance.micro_batch,
                          .received_bytes = static_cast<std::uint64_t>(instance.op->wire_bytes)});
  ++lane.completed;
  lane.free_ns = now_ns_;
  lane.state = State::idle;
}

bool VirtualExecutor::has_work() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const LaneState& lane) { return lane.head < lane.queue.size(); });
}

}  // namespace foreshard::sim
