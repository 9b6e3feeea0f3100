#include "apps/calibrate/collective_times.hpp"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "apps/calibrate/samples.hpp"
#include "base/clock.hpp"

namespace foreshard::calibrate {
namespace {

using model::OpKind;

constexpr std::int64_t smallest_bytes = 256;

/// One rank's part in the measurement. The arena holds `slots` whole buffers, used in turn so that none stays warm in
/// cache longer than in training, and behind them one shard.
class Bench {
 public:
  Bench(comm::Communicator& communicator, std::span<const int> members, std::int64_t largest_bytes)
      : communicator_(communicator),
        slot_bytes_(rounded_up(largest_bytes, std::ssize(members))),
        arena_(communicator.arena(slots * slot_bytes_ + slot_bytes_)),
        group_(communicator.group(members)) {}

  /// Typical seconds of one call on a whole buffer of `bytes`, of the slowest rank; on all ranks.
  double seconds(OpKind kind, std::int64_t bytes, double budget_s) {
    const double first = slowest(call(kind, bytes));
    const int calls = std::clamp(static_cast<int>(budget_s / first), 5, 200);
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) times.push_back(call(kind, bytes));
    return slowest(typical(times));
  }

 private:
  static constexpr int slots = 3;

  static std::int64_t rounded_up(std::int64_t bytes, std::int64_t members) {
    const std::int64_t unit = 64 * members;
    return (bytes + unit - 1) / unit * unit;
  }

  /// Gradients come fresh from the core that computed them, so the buffer is written first.
  double call(OpKind kind, std::int64_t bytes) {
    std::byte* const whole = arena_.data() + slot_bytes_ * (turn_++ % slots);
    std::byte* const shard = arena_.data() + slot_bytes_ * slots;
    if (kind != OpKind::all_gather) std::memset(whole, 0, static_cast<std::size_t>(bytes));
    meet();
    const std::int64_t start_ns = now_ns();
    run(kind, whole, shard, bytes / size_bytes(DType::f32));
    return 1e-9 * static_cast<double>(now_ns() - start_ns);
  }

  void run(OpKind kind, std::byte* whole, std::byte* shard, std::int64_t count) {
    const std::int64_t part = count / group_->size();
    if (kind == OpKind::all_gather) group_->all_gather(shard, whole, part, DType::f32);
    if (kind == OpKind::reduce_scatter) group_->reduce_scatter(whole, shard, part, DType::f32, false);
    if (kind == OpKind::all_reduce) group_->all_reduce(whole, shard, count, DType::f32, false);
  }

  void meet() { group_->all_reduce(arena_.data(), arena_.data(), 1, DType::i32, false); }

  double slowest(double seconds) {
    double worst = 0;
    for (const std::uint64_t ns : communicator_.all_gather_u64(static_cast<std::uint64_t>(seconds * 1e9)))
      worst = std::max(worst, 1e-9 * static_cast<double>(ns));
    return std::max(worst, 1e-9);
  }

  comm::Communicator& communicator_;
  std::int64_t slot_bytes_;
  std::span<std::byte> arena_;
  std::unique_ptr<comm::Group> group_;
  int turn_ = 0;
};

}  // namespace

void measure_collectives(sim::Machine& machine, comm::Communicator& communicator, bool quick) {
  std::vector<int> everyone(static_cast<std::size_t>(communicator.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  measure_collectives(machine, communicator, everyone, quick);
}

void measure_collectives(sim::Machine& machine, comm::Communicator& communicator, std::span<const int> members,
                         bool quick) {
  const std::int64_t largest = quick ? std::int64_t{1} << 24 : std::int64_t{1} << 26;
  const int ranks = static_cast<int>(members.size());
  Bench bench(communicator, members, largest);
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce}) {
    sim::CollectiveTable table{
        kind, ranks, {}, fmt::format("measured through {}, {} ranks", communicator.transport(), ranks)};
    for (std::int64_t bytes = smallest_bytes * ranks; bytes <= largest; bytes *= 4)
      table.points.push_back({static_cast<double>(bytes), bench.seconds(kind, bytes, quick ? 0.05 : 0.2)});
    if (communicator.rank() == 0) machine.collectives.push_back(std::move(table));
  }
}

}  // namespace foreshard::calibrate
