#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace foreshard::golden {

/// Bytes requested, allocated, active, reserved, each now and at the peak; inactive split bytes now; retries,
/// out-of-memory errors, segments taken and given back, waits for all events; the time.
using Numbers = std::array<std::int64_t, 15>;

inline constexpr std::int64_t device_bytes = (std::int64_t{1536} << 20) + 7 * 512;

/// Random calls to an allocator of `device_bytes`, the same wherever they run. `Allocator` has
///   void* allocate(std::int64_t bytes, int stream);     null: out of memory
///   void free(void*, const std::vector<int>& streams);  that used it besides its own
///   void empty_cache();
///   std::int64_t& now();
///   std::int64_t& busy(int stream);                     when it has done what was issued to it
template <class Allocator>
class RandomCalls {
 public:
  RandomCalls(Allocator& allocator, unsigned seed) : allocator_(allocator), random_(seed) {
    for (std::int64_t& size : palette_) size = any_size();
  }

  void step() {
    allocator_.now() += pick(2000);
    const std::int64_t kind = pick(1000);
    if (kind < 3)
      allocator_.empty_cache();
    else if (kind < 560 || held_.empty())
      allocate();
    else
      free();
  }

 private:
  static constexpr int streams = 3;
  struct Held {
    void* block = nullptr;
    int stream = 0;
  };

  std::int64_t pick(std::int64_t below) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
  }
  /// 16 B to 128 MiB, every power of two alike.
  std::int64_t any_size() {
    const std::int64_t power = std::int64_t{1} << (4 + pick(23));
    return power + pick(power);
  }
  void allocate() {
    const std::int64_t size = pick(10) < 7 ? palette_[std::size_t(pick(std::int64_t(palette_.size())))] : any_size();
    const int stream = static_cast<int>(pick(streams));
    if (void* block = allocator_.allocate(size, stream)) return held_.push_back({block, stream});
    for (int i = 0; i < 8 && !held_.empty(); ++i) free();
  }
  void free() {
    std::swap(held_[std::size_t(pick(std::int64_t(held_.size())))], held_.back());
    const Held held = held_.back();
    held_.pop_back();
    std::vector<int> used;
    if (pick(3) == 0)
      for (int stream = 0; stream < streams; ++stream)
        if (stream != held.stream && pick(2) == 0) use(stream, used);
    allocator_.free(held.block, used);
  }
  void use(int stream, std::vector<int>& used) {
    used.push_back(stream);
    allocator_.busy(stream) = std::max(allocator_.busy(stream), allocator_.now()) + pick(20'000);
  }

  Allocator& allocator_;
  std::mt19937 random_;
  std::array<std::int64_t, 24> palette_{};
  std::vector<Held> held_;
};

}  // namespace foreshard::golden
