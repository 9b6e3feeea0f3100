#include <cmath>

#include "base/random.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/philox.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// The least 32-bit word w with uniform(w) ≥ probability; 2^32 if there is none.
std::uint64_t least_kept(float probability) {
  return static_cast<std::uint64_t>(std::max(0.0, std::ceil(static_cast<double>(probability) * 0x1p32 - 0.5)));
}

class Mask {
 public:
  explicit Mask(const Dropout& o)
      : key_(o.key),
        stream_(o.stream),
        none_(least_kept(o.probability) > UINT32_MAX),
        least_(static_cast<std::uint32_t>(least_kept(o.probability))),
        scale_(static_cast<float>(1.0 / (1.0 - static_cast<double>(o.probability)))) {}

  /// `count` elements from element e on, all of one Philox call.
  void few(std::uint64_t e, std::int64_t count, const float* x, float* y) const {
    const auto words = philox(key_, stream_, e / 4);
    for (std::int64_t i = 0; i < count; ++i) y[i] = masked(words[e % 4 + static_cast<std::uint64_t>(i)], x[i]);
  }

  /// 64 elements from element e on, a multiple of 4.
  void many(std::uint64_t e, const float* x, float* y) const {
    const PhiloxLanes words(key_, stream_, e / 4);
    for (int quarter = 0; quarter < 4; ++quarter) {
      const std::int64_t at = quarter * lanes;
      const auto kept = words.in_order(quarter) >= least_;
      store(y + at, none_ ? Vec{} : kept ? load(x + at) * scale_ : Vec{});
    }
  }

 private:
  float masked(std::uint32_t word, float x) const { return word >= least_ && !none_ ? x * scale_ : 0.0F; }

  std::uint64_t key_, stream_;
  bool none_;
  std::uint32_t least_;
  float scale_;
};

}  // namespace

void add(std::int64_t count, const float* a, const float* b, float* sum) {
  share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
    map(
        end - begin, sum + begin, [](Vec u, Vec v) { return u + v; }, a + begin, b + begin);
  });
}

void dropout(const Dropout& o, const float* x, float* y) {
  share(o.count, grain_elements / 8, [=, mask = Mask(o), first = o.first](std::int64_t i, std::int64_t end) {
    while (i < end) {
      const std::uint64_t e = first + static_cast<std::uint64_t>(i);
      const std::int64_t few = std::min(end - i, 4 - static_cast<std::int64_t>(e % 4));
      const bool many = e % 4 == 0 && end - i >= 4 * lanes;
      many ? mask.many(e, x + i, y + i) : mask.few(e, few, x + i, y + i);
      i += many ? 4 * lanes : few;
    }
  });
}

}  // namespace foreshard::kernels::cpu
