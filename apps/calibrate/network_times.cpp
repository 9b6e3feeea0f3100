#include "apps/calibrate/network_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <numeric>

#include "apps/calibrate/kernel_times.hpp"
#include "apps/calibrate/process.hpp"
#include "apps/calibrate/samples.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

namespace foreshard::calibrate {
namespace {

constexpr std::int64_t largest_bytes = std::int64_t{16} << 20;  ///< of a whole buffer, as of a unit of 4 M parameters
constexpr std::int64_t smallest_bytes = 64;                     ///< of a shard
constexpr int gathers = 8;                                      ///< in a row

std::vector<int> up_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Seconds of one of several gathers in a row; the typical one of several rounds.
double seconds_of(comm::Group& group, std::byte* whole, std::int64_t shard_bytes, int rounds) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t start_ns = now_ns();
    for (int i = 0; i < gathers; ++i)
      group.all_gather(whole + group.index() * shard_bytes, whole, shard_bytes / size_bytes(DType::f32), DType::f32);
    seconds.push_back(1e-9 * static_cast<double>(now_ns() - start_ns) / gathers);
  }
  return typical(seconds);
}

/// What gathers take beside compute, and what compute loses meanwhile: part of its speed.
struct Together {
  double seconds = 0, lost = 0;
};

/// Gathers in a row while this rank computes on `threads` threads, as every other does.
Together together(comm::Group& group, std::byte* whole, std::int64_t shard_bytes, int rounds, int threads) {
  int steps = 0;
  const double alone_s = train_while([&] { return ++steps < 2 * rounds; }, threads);
  std::atomic<bool> done = false;
  std::future<double> step_s =
      std::async(std::launch::async, [&] { return train_while([&] { return !done; }, threads); });
  const double seconds = seconds_of(group, whole, shard_bytes, rounds);
  done = true;
  return {seconds, std::max(0.0, 1 - alone_s / step_s.get())};
}

}  // namespace

std::vector<int> ranks_of_this_node(comm::Communicator& world) {
  const int size = world.node_size(), first = world.rank() - world.node_rank();
  const bool side_by_side = world.node_rank() == world.rank() % size && world.size() % size == 0;
  for (const std::uint64_t fits : world.all_gather_u64(side_by_side ? static_cast<std::uint64_t>(size) : 0))
    if (fits != static_cast<std::uint64_t>(size))
      throw InputError(ExitCode::usage,
                       "the ranks of a node are not side by side, or not equally many on each; calibration expects as "
                       "many on every node, dealt by slot: mpirun --map-by slot");
  std::vector<int> ranks = up_to(size);
  for (int& rank : ranks) rank += first;
  return ranks;
}

void measure_network(sim::Machine& machine, comm::Communicator& world, bool quick) {
  const double elsewhere = world.size() - world.node_size(), nodes = double(world.size()) / world.node_size();
  const std::int64_t shard_bytes = largest_bytes / world.size() / 64 * 64;
  std::byte* const whole = world.arena(shard_bytes * world.size()).data();
  const auto group = world.group(up_to(world.size()));
  const int rounds = quick ? 5 : 15;
  const double small = seconds_of(*group, whole, smallest_bytes, rounds);
  const double large = seconds_of(*group, whole, shard_bytes, rounds);
  const int threads = std::max(1, machine.cores / world.node_size());
  const Together busy = together(*group, whole, shard_bytes, rounds, threads);
  const double received = elsewhere * static_cast<double>(shard_bytes);
  const std::string source = fmt::format("measured in gathers of {} ranks on {} nodes", world.size(), nodes);
  machine.network_latency_s = {small / std::ceil(std::log2(nodes)), source};
  machine.network_bytes_per_s = {received * world.node_size() / (large - small), source};
  machine.network_beside_compute = {std::min(1.0, large / busy.seconds), source + ", and again beside compute"};
  machine.network_core_s_per_byte = {busy.lost * threads * busy.seconds / received, source + " beside compute"};
}

}  // namespace foreshard::calibrate
