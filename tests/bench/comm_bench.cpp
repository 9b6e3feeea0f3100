// Collectives between the ranks of a node beside memcpy: mpirun -n 2 bench_comm [largest MiB] [--messages]
//
// Per size and round, all ranks together do a batch of each kind; a batch's time is that of the slowest rank. `memcpy`
// copies in private memory the bytes that must cross to this rank, (P-1)/P of the buffer. Printed are medians of
// rounds, and the median of the rounds' ratios to memcpy, so that what disturbs a whole round cancels.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/mpi_communicator.hpp"

namespace {

using namespace foreshard;
using namespace foreshard::comm;

constexpr int rounds = 11;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(Communicator& ranks, std::int64_t largest_bytes) : ranks_(ranks), arena_(ranks.arena(2 * largest_bytes)) {
    std::vector<int> members;
    for (int rank = 0; rank < ranks.size(); ++rank) members.push_back(rank);
    group_ = ranks.group(members);
    std::memset(arena_.data(), 1, arena_.size());
    from_.assign(static_cast<std::size_t>(largest_bytes), std::byte{1});
    to_ = from_;
  }

  void print_size(std::int64_t bytes);
  void print_round_trip();

 private:
  /// Seconds of one call, the slowest rank's.
  double time(int calls, const std::function<void()>& call) {
    ranks_.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    const auto all = ranks_.all_gather_u64(static_cast<std::uint64_t>(spent.count()));
    return static_cast<double>(*std::max_element(all.begin(), all.end())) * 1e-9 / calls;
  }

  Communicator& ranks_;
  std::span<std::byte> arena_;
  std::unique_ptr<Group> group_;
  std::vector<std::byte> from_, to_;
};

void Bench::print_size(std::int64_t bytes) {
  const int size = ranks_.size(), index = group_->index();
  const std::int64_t count = bytes / 4 / size;
  std::byte *whole = arena_.data(), *other = whole + arena_.size() / 2;
  const std::size_t crossing = static_cast<std::size_t>(bytes / size * (size - 1));
  const std::vector<std::function<void()>> calls = {
      [&] { std::memcpy(to_.data(), from_.data(), crossing); },
      [&] { group_->all_gather(whole + index * count * 4, whole, count, DType::f32); },
      [&] { group_->reduce_scatter(whole, other, count, DType::f32, false); },
      [&] { group_->reduce_scatter(whole, other, count, DType::f32, true); },
      [&] { group_->all_reduce(whole, other, count * size, DType::f32, false); },
      [&] { group_->all_reduce(whole, other, count * size, DType::f32, true); },
  };
  const int repeats = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{48} << 20) / bytes, 1, 2000));
  std::vector<std::vector<double>> seconds(calls.size()), ratios(calls.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t kind = 0; kind < calls.size(); ++kind) {
      seconds[kind].push_back(time(repeats, calls[kind]));
      ratios[kind].push_back(seconds[0].back() / seconds[kind].back());
    }
  }
  if (ranks_.rank() != 0) return;
  std::string line = fmt::format("{:>10}", bytes / 1024);
  for (std::size_t kind = 0; kind < calls.size(); ++kind) {
    const double t = median(seconds[kind]);
    line += fmt::format(" | {:9.1f} {:6.2f} {:4.2f}", t * 1e6, static_cast<double>(crossing) / t * 1e-9,
                        median(ratios[kind]));
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Two all-reduces of one number: there and back.
void Bench::print_round_trip() {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(
        time(2000, [&] { group_->all_gather(arena_.data() + 4 * group_->index(), arena_.data(), 1, DType::f32); }));
  }
  if (ranks_.rank() == 0)
    fmt::print("all_gather of one float (ready there, done back): {:.2f} us\n", median(seconds) * 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  MpiSession session(argc, argv);
  const std::int64_t largest = argc > 1 ? std::atoll(argv[1]) : 256;
  const auto ranks = make_mpi({.shared_memory = !(argc > 2 && std::string(argv[2]) == "--messages")});
  Bench bench(*ranks, largest << 20);
  if (ranks->rank() == 0) {
    fmt::print("{} ranks, {}, MPI thread level {}\n", ranks->size(), ranks->transport(), session.thread_level());
    fmt::print("per kind: us, GB/s of the bytes that cross to a rank, rate / memcpy rate\n");
    fmt::print("{:>10}", "KiB");
    for (const char* kind :
         {"memcpy", "all_gather", "reduce_scatter", "  accumulating", "all_reduce", "  accumulating"})
      fmt::print(" | {:<21}", kind);
    fmt::print("\n");
  }
  for (std::int64_t bytes = 1024; bytes <= largest << 20; bytes *= 4) bench.print_size(bytes);
  bench.print_round_trip();
}
