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
  template <class T>
  void few(std::uint64_t e, std::int64_t count, const T* x, T* y) const {
    const auto words = philox(key_, stream_, e / 4);
    for (std::int64_t i = 0; i < count; ++i) y[i] = masked(words[e % 4 + static_cast<std::uint64_t>(i)], x[i]);
  }

  /// 64 elements from element e on, a multiple of 4.
  template <class T>
  void many(std::uint64_t e, const T* x, T* y) const {
    const PhiloxLanes words(key_, stream_, e / 4);
    for (int quarter = 0; quarter < 4; ++quarter) {
      const std::int64_t at = quarter * lanes;
      const auto kept = words.in_order(quarter) >= least_;
      store(y + at, none_ ? Vec{} : kept ? load(x + at) * scale_ : Vec{});
    }
  }

 private:
  template <class T>
  T masked(std::uint32_t word, T x) const {
    return word >= least_ && !none_ ? static_cast<T>(static_cast<float>(x) * scale_) : T{};
  }

  std::uint64_t key_, stream_;
  bool none_;
  std::uint32_t least_;
  float scale_;
};

/// y[i] = f(a[i], …), shared among the team.
template <class T, class F, class... Inputs>
void map_all(std::int64_t count, T* y, F f, const Inputs*... inputs) {
  share(count, grain_elements,
        [=](std::int64_t begin, std::int64_t end) { map(end - begin, y + begin, f, inputs + begin...); });
}

template <class From, class To>
void cast_elements(std::int64_t count, bool accumulate, const From* from, To* to) {
  share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    if (accumulate) return map(n, to + begin, plus, to + begin, from + begin);
    map(n, to + begin, same, from + begin);
  });
}

template <class T>
void drop_elements(const Dropout& o, const T* x, T* y) {
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

}  // namespace

void add(std::int64_t count, Const a, Const b, Mut sum) {
  by_number(sum.dtype, [&]<class T>(T) { map_all(count, as<T>(sum), plus, as<T>(a), as<T>(b)); });
}

void cast(std::int64_t count, bool accumulate, Const from, Mut to) {
  by_number(from.dtype, [&]<class From>(From) {
    by_number(to.dtype, [&]<class To>(To) { cast_elements(count, accumulate, as<From>(from), as<To>(to)); });
  });
}

void relu(std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    map_all(
        count, as<T>(y), [](Vec v) { return v < 0.0F ? Vec{} : v; }, as<T>(x));
  });
}

void relu_backward(std::int64_t count, Const dy, Const y, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) {
    map_all(
        count, as<T>(dx), [](Vec d, Vec v) { return v <= 0.0F ? Vec{} : d; }, as<T>(dy), as<T>(y));
  });
}

void scale(std::int64_t count, double factor, Const x, Mut y) {
  by_number(y.dtype, [&, f = static_cast<float>(factor)]<class T>(T) {
    map_all(
        count, as<T>(y), [f](Vec v) { return v * f; }, as<T>(x));
  });
}

void dropout(const Dropout& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { drop_elements(o, as<T>(x), as<T>(y)); });
}

}  // namespace foreshard::kernels::cpu
