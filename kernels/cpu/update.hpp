#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/philox.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {

/// The gradient that an update works with: scaled, then cut to ±limit.
struct UpdateGradient {
  explicit UpdateGradient(const Update& o)
      : scale(static_cast<float>(o.grad_scale)), limit(static_cast<float>(o.clip_value)) {}
  template <class Grad>
  float operator()(Grad grad) const {
    const float g = static_cast<float>(grad) * scale, low = g < -limit ? -limit : g;
    return low > limit ? limit : low;
  }
  float scale, limit;
};

/// What Rounding::random is for elements i, i + 1, … of an update, as far as sixteen calls of Philox reach.
class RandomHalves {
 public:
  RandomHalves(const Rounding& o, std::int64_t i) {
    static_assert(std::endian::native == std::endian::little, "low halves of words come first");
    const std::uint64_t e = o.first + static_cast<std::uint64_t>(i);
    const PhiloxLanes calls(o.key, o.stream, e / Rounding::halves);
    for (int quarter = 0; quarter < 4; ++quarter) {
      const UintVec words = calls.in_order(quarter);
      std::memcpy(all_ + 2 * lanes * quarter, &words, sizeof words);
    }
    first_ = static_cast<std::int64_t>(e % Rounding::halves);
  }
  std::int64_t count() const { return 8 * lanes - first_; }
  const std::uint16_t* data() const { return all_ + first_; }

 private:
  std::uint16_t all_[8 * lanes];
  std::int64_t first_;
};

template <class Move, class Grad, class T>
void move_elements(std::int64_t begin, std::int64_t end, const Move& move, const Grad* grad, T* p) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) p[i] = static_cast<T>(move(i, grad[i], static_cast<float>(p[i])));
}

template <class Move, class Grad, class T>
void move_stochastically(const Rounding& rounding, std::int64_t begin, std::int64_t end, const Move& move,
                         const Grad* grad, T* p) {
  for (std::int64_t i = begin; i < end;) {
    const RandomHalves random(rounding, i);
    const std::int64_t next = std::min(end, i + random.count());
    const std::uint16_t* const halves = random.data();
#pragma omp simd
    for (std::int64_t k = i; k < next; ++k)
      p[k] = static_cast<T>(rounded_stochastically(move(k, grad[k], static_cast<float>(p[k])), halves[k - i]));
    i = next;
  }
}

/// Shares elements among the team: parameter i becomes `move(i, grad[i], parameter)`, rounded as the update says.
template <class Move>
void update_elements(const Update& o, const Const& gradient, const Mut& parameter, Move move) {
  by_number(gradient.dtype, [&]<class Grad>(Grad) {
    by_type<float, BFloat16>(parameter.dtype, [&]<class T>(T) {
      share(o.count, grain_elements,
            [move, rounding = o.rounding, grad = as<Grad>(gradient), p = as<T>(parameter)](std::int64_t begin,
                                                                                           std::int64_t end) {
              if constexpr (is_half<T>)
                if (rounding.stochastic) return move_stochastically(rounding, begin, end, move, grad, p);
              move_elements(begin, end, move, grad, p);
            });
    });
  });
}

}  // namespace foreshard::kernels::cpu
