#pragma once
#include <cmath>
#include <numbers>

#include "kernels/cpu/simd.hpp"

namespace foreshard::kernels::cpu {

/// Cosines and sines of 16 angles, good to 2 units of 2^−24.
struct CosSin {
  Vec cosine, sine;
};

/// Angles are brought to |r| ≤ π/4 in double, then the polynomials of Cephes' cosf and sinf (S. Moshier,
/// https://www.netlib.org/cephes/). `angles` are of any size below 2^31 quarter turns.
inline CosSin cos_sin(const double* angles) {
  Vec r;
  IntVec quarters;
  for (int i = 0; i < lanes; ++i) {
    const double turns = std::nearbyint(angles[i] * (2 / std::numbers::pi));
    r[i] = static_cast<float>(angles[i] - turns * (std::numbers::pi / 2));
    quarters[i] = static_cast<std::int32_t>(turns);
  }
  const Vec z = r * r;
  const Vec sine =
      fma(fma(fma(z, broadcast(-1.9515295891e-4F), broadcast(8.3321608736e-3F)), z, broadcast(-1.6666654611e-1F)),
          z * r, r);
  const Vec cosine = fma(fma(fma(z, broadcast(2.443315711809948e-5F), broadcast(-1.388731625493765e-3F)), z,
                             broadcast(4.166664568298827e-2F)),
                         z * z, 1.0F - 0.5F * z);
  const IntVec odd = (quarters & 1) != 0, cosine_falls = ((quarters + 1) & 2) != 0, sine_falls = (quarters & 2) != 0;
  const Vec c = odd ? sine : cosine, s = odd ? cosine : sine;
  return {cosine_falls ? -c : c, sine_falls ? -s : s};
}

}  // namespace foreshard::kernels::cpu
