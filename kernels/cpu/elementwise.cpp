#include <cmath>

#include "base/random.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

using Group = std::int64_t;  // four elements that share one Philox call

/// The least 32-bit word w with uniform(w) ≥ probability; 2^32 if there is none.
std::uint64_t least_kept(float probability) {
  return static_cast<std::uint64_t>(std::max(0.0, std::ceil(static_cast<double>(probability) * 0x1p32 - 0.5)));
}

struct Mask {
  std::uint64_t key, stream, first, least;
  float scale;

  /// Elements [begin, end) of x, none of them of another group than `group`.
  void apply(std::uint64_t group, std::uint64_t begin, std::uint64_t end, const float* x, float* y) const {
    const auto words = philox(key, stream, group);
    for (std::uint64_t e = begin; e < end; ++e) y[e - first] = words[e % 4] >= least ? x[e - first] * scale : 0.0F;
  }

  /// Sixteen groups at once, beginning with `group`: their rounds are independent, so the compiler runs them in lanes.
  void apply_many(std::uint64_t group, const float* x, float* y) const {
    alignas(64) std::uint32_t words[4][lanes];
#pragma omp simd
    for (std::int64_t g = 0; g < lanes; ++g) {
      const auto w = philox(key, stream, group + static_cast<std::uint64_t>(g));
      for (int i = 0; i < 4; ++i) words[i][g] = w[i];
    }
    for (std::int64_t g = 0; g < lanes; ++g) {
      for (int i = 0; i < 4; ++i) y[4 * g + i] = words[i][g] >= least ? x[4 * g + i] * scale : 0.0F;
    }
  }
};

}  // namespace

void add(std::int64_t count, const float* a, const float* b, float* sum) {
  share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
    map(
        end - begin, sum + begin, [](Vec u, Vec v) { return u + v; }, a + begin, b + begin);
  });
}

void dropout(const Dropout& o, const float* x, float* y) {
  const float scale = static_cast<float>(1.0 / (1.0 - static_cast<double>(o.probability)));
  const Mask mask{o.key, o.stream, o.first, least_kept(o.probability), scale};
  share(o.count, grain_elements / 8, [=](std::int64_t from, std::int64_t to) {
    std::uint64_t e = o.first + static_cast<std::uint64_t>(from);
    const std::uint64_t end = o.first + static_cast<std::uint64_t>(to);
    while (e < end) {
      if (e % 4 == 0 && e + 4 * lanes <= end) {
        mask.apply_many(e / 4, x + (e - o.first), y + (e - o.first));
        e += 4 * lanes;
      } else {
        const std::uint64_t stop = std::min(end, (e / 4 + 1) * 4);
        mask.apply(e / 4, e, stop, x, y);
        e = stop;
      }
    }
  });
}

}  // namespace foreshard::kernels::cpu
