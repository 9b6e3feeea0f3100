// Against PyTorch's own allocator: tests/golden/caching_allocator.csv is what libc10_cuda.so of 2.15 counts over the
// same random calls, on a CUDA runtime without a device (tests/golden/make_caching_allocator.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "golden/caching_allocator/random_calls.hpp"
#include "sim/allocator/caching_allocator.hpp"
#include "sim/validation/csv_table.hpp"

namespace foreshard::sim::allocator {
namespace {

using golden::Numbers;

class Ours {
 public:
  explicit Ours(const Settings& settings) : allocator_(settings, golden::device_bytes, 0, {0, 0, 0, 0, 0, 0, 0}) {}

  void* allocate(Bytes bytes, int stream) {
    const Allocation got = allocator_.allocate(bytes, stream, now_);
    now_ = got.host_at;
    return got.block;
  }
  void free(void* block, const std::vector<int>& streams) {
    if (streams.empty()) return allocator_.free(static_cast<Block*>(block));
    Nanoseconds done = 0;
    for (const int stream : streams) done = std::max(done, busy(stream));
    allocator_.free(static_cast<Block*>(block), done);
  }
  void empty_cache() { now_ = allocator_.empty_cache(now_); }
  Nanoseconds& now() { return now_; }
  Nanoseconds& busy(int stream) { return busy_[std::size_t(stream)]; }

  Numbers numbers() const {
    const Statistics& s = allocator_.statistics();
    return {s.requested.current, s.requested.peak, s.allocated.current,
            s.allocated.peak,    s.active.current, s.active.peak,
            s.reserved.current,  s.reserved.peak,  s.inactive_split.current,
            s.retries,           s.ooms,           s.device_allocs,
            s.device_frees,      s.syncs,          now_};
  }

 private:
  CachingAllocator allocator_;
  Nanoseconds now_ = 0;
  std::array<Nanoseconds, 3> busy_{};
};

struct Run {
  std::string settings;
  double fraction = 0;
  unsigned seed = 0;
  auto operator<=>(const Run&) const = default;
};

std::map<Run, std::map<int, Numbers>> pytorch() {
  const auto table = validation::read_csv(FORESHARD_GOLDEN_DIR "/caching_allocator.csv");
  std::map<Run, std::map<int, Numbers>> all;
  for (const auto& row : table.rows) {
    Numbers numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::stoll(row[4 + i]);
    all[{row[0], std::stod(row[1]), unsigned(std::stoul(row[2]))}][std::stoi(row[3])] = numbers;
  }
  return all;
}

TEST(PyTorchsOwnAllocator, CountsTheSameInEverySetting) {
  const auto runs = pytorch();
  ASSERT_EQ(runs.size(), 45u);
  std::int64_t retries = 0, ooms = 0;
  for (const auto& [run, samples] : runs) {
    Settings settings = parse_settings(run.settings);
    settings.memory_fraction = run.fraction;
    Ours ours(settings);
    golden::RandomCalls<Ours> calls(ours, run.seed);
    for (int call = 1; call <= samples.rbegin()->first; ++call) {
      calls.step();
      if (const auto sample = samples.find(call); sample != samples.end()) {
        ASSERT_EQ(ours.numbers(), sample->second) << fmt::format("settings \"{}\", fraction {}, seed {}, call {}",
                                                                 run.settings, run.fraction, run.seed, call);
      }
    }
    retries += samples.rbegin()->second[9], ooms += samples.rbegin()->second[10];
  }
  EXPECT_GT(retries, 2000);
  EXPECT_GT(ooms, 1000);
}

}  // namespace
}  // namespace foreshard::sim::allocator
