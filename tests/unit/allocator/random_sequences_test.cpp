// Long random sequences against plain lists, statistic by statistic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sim/allocator/caching_allocator.hpp"
#include "unit/allocator/list_allocator.hpp"

namespace foreshard::sim::allocator {

void PrintTo(const Statistics& s, std::ostream* out) {
  const auto gauge = [](const Gauge& g) { return fmt::format("{}/{}", g.current, g.peak); };
  *out << fmt::format(
      "requested {} allocated {} active {} reserved {} inactive {} retries {} ooms {} device {}/{} syncs {}",
      gauge(s.requested), gauge(s.allocated), gauge(s.active), gauge(s.reserved), gauge(s.inactive_split), s.retries,
      s.ooms, s.device_allocs, s.device_frees, s.syncs);
}

namespace {

Statistics without_totals(Statistics statistics) {
  for (Gauge* gauge : {&statistics.requested, &statistics.allocated, &statistics.active, &statistics.reserved,
                       &statistics.inactive_split})
    gauge->total = 0;
  return statistics;
}

/// One random call after the other, on both.
class Pair {
 public:
  Pair(const Settings& settings, unsigned seed)
      : random_(seed), fast_(settings, device, 0, cost), plain_(settings, device, cost) {
    for (Bytes& size : palette_) size = any_size();
  }

  void step() {
    now_ += pick(0, 2000);
    const int kind = pick(0, 999);
    if (kind < 3)
      empty();
    else if (kind < 8)
      outside();
    else if (kind < 560 || held_.empty())
      allocate();
    else
      free();
  }
  const Statistics& fast() const { return fast_.statistics(); }
  const Statistics& plain() const { return plain_.statistics(); }

 private:
  static constexpr Bytes device = 1536 * mib + 7 * 512;
  static constexpr DriverCost cost{};

  int pick(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  Bytes any_size() { return static_cast<Bytes>(std::exp2(std::uniform_real_distribution(4.0, 27.2)(random_))); }

  void allocate() {
    const Bytes size = pick(0, 9) < 7 ? palette_[std::size_t(pick(0, int(palette_.size()) - 1))] : any_size();
    const int stream = pick(0, 2);
    const Nanoseconds idle_at = now_ + pick(0, 50'000);
    const Allocation got = fast_.allocate(size, stream, now_, idle_at);
    const auto expected = plain_.allocate(size, stream, now_, idle_at);
    ASSERT_EQ(got.out_of_memory, expected.name < 0);
    ASSERT_EQ(got.host_at, expected.host_at);
    now_ = got.host_at;
    if (got.out_of_memory) {
      for (int i = 0; i < 8 && !held_.empty(); ++i) free();
    } else {
      held_.push_back({got.block, expected.name});
    }
  }
  void free() {
    const auto index = std::size_t(pick(0, int(held_.size()) - 1));
    std::swap(held_[index], held_.back());
    const auto [block, name] = held_.back();
    held_.pop_back();
    if (pick(0, 2) > 0) return fast_.free(block), plain_.free(name);
    const Nanoseconds completes_at = now_ + pick(-1000, 30'000);
    fast_.free(block, completes_at), plain_.free(name, completes_at);
  }
  void empty() {
    const Nanoseconds idle_at = now_ + pick(0, 50'000), host_at = fast_.empty_cache(now_, idle_at);
    ASSERT_EQ(host_at, plain_.empty_cache(now_, idle_at));
    now_ = host_at;
  }
  void outside() {
    const Bytes bytes = pick(0, 300) * mib;
    if (fast_.device_free() + fast_.outside() < bytes) return;
    fast_.set_outside(bytes), plain_.set_outside(bytes);
  }

  std::mt19937 random_;
  CachingAllocator fast_;
  ListAllocator plain_;
  std::array<Bytes, 24> palette_{};
  std::vector<std::pair<Block*, int>> held_;
  Nanoseconds now_ = 0;
};

class RandomSequences : public testing::TestWithParam<const char*> {};

TEST_P(RandomSequences, GiveEveryStatisticOfPlainLists) {
  Statistics sum;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    Pair pair(parse_settings(GetParam()), seed);
    for (int i = 0; i < 3000; ++i) {
      ASSERT_NO_FATAL_FAILURE(pair.step());
      ASSERT_EQ(without_totals(pair.fast()), pair.plain()) << "call " << i << " of seed " << seed;
    }
    sum.retries += pair.fast().retries, sum.ooms += pair.fast().ooms, sum.device_frees += pair.fast().device_frees;
  }
  EXPECT_GT(sum.ooms, 0);
  EXPECT_GT(sum.retries, sum.ooms) << "some retries succeed";
  EXPECT_GT(sum.device_frees, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, RandomSequences,
    testing::Values("", "max_split_size_mb:20", "max_split_size_mb:21,max_non_split_rounding_mb:40",
                    "max_split_size_mb:64", "expandable_segments:True", "roundup_power2_divisions:4",
                    "roundup_power2_divisions:[4:8,16:2,32:0,>:4]", "per_process_memory_fraction:0.7",
                    "garbage_collection_threshold:0.6,per_process_memory_fraction:0.9", "large_segment_size_mb:12",
                    "garbage_collection_threshold:0.5,per_process_memory_fraction:0.99,max_split_size_mb:32",
                    "expandable_segments:True,roundup_power2_divisions:2,per_process_memory_fraction:0.8",
                    "expandable_segments:True,max_split_size_mb:50",
                    "expandable_segments:True,large_segment_size_mb:16"));

}  // namespace
}  // namespace foreshard::sim::allocator
