#include "base/random.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

bool kept(const Dropout& o, std::uint64_t element) {
  const std::uint32_t word = philox(o.key, o.stream, element / 4)[element % 4];
  return uniform(word) >= static_cast<double>(o.probability);
}

template <class T>
void add_elements(std::int64_t count, const T* a, const T* b, T* sum) {
  using C = Computed<T>;
  for (std::int64_t i = 0; i < count; ++i) sum[i] = static_cast<T>(static_cast<C>(a[i]) + static_cast<C>(b[i]));
}

/// A double holds the exact sum of two floats of like magnitude, and enough of any other to round it correctly.
template <class From, class To>
void cast_elements(std::int64_t count, bool accumulate, const From* from, To* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(from[i]);
    to[i] = static_cast<To>(accumulate ? static_cast<double>(to[i]) + value : value);
  }
}

template <class T>
void drop_elements(const Dropout& o, const T* x, T* y) {
  using C = Computed<T>;
  const C scale = static_cast<C>(1.0 / (1.0 - static_cast<double>(o.probability)));
  for (std::int64_t i = 0; i < o.count; ++i) {
    const bool keep = kept(o, o.first + static_cast<std::uint64_t>(i));
    y[i] = keep ? static_cast<T>(static_cast<C>(x[i]) * scale) : T{};
  }
}

/// y[i] = f(a[i], …), computed in double.
template <class T, class F, class... Inputs>
void map(std::int64_t count, T* y, F f, const Inputs*... inputs) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(f(static_cast<double>(inputs[i])...));
}

}  // namespace

void add(std::int64_t count, Const a, Const b, Mut sum) {
  by_number(sum.dtype, [&]<class T>(T) { add_elements(count, as<T>(a), as<T>(b), as<T>(sum)); });
}

void cast(std::int64_t count, bool accumulate, Const from, Mut to) {
  by_number(from.dtype, [&]<class From>(From) {
    by_number(to.dtype, [&]<class To>(To) { cast_elements(count, accumulate, as<From>(from), as<To>(to)); });
  });
}

void relu(std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    map(
        count, as<T>(y), [](double v) { return v < 0 ? 0 : v; }, as<T>(x));
  });
}

void relu_backward(std::int64_t count, Const dy, Const y, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) {
    map(
        count, as<T>(dx), [](double d, double v) { return v <= 0 ? 0 : d; }, as<T>(dy), as<T>(y));
  });
}

void scale(std::int64_t count, double factor, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    map(
        count, as<T>(y), [factor](double v) { return v * factor; }, as<T>(x));
  });
}

void dropout(const Dropout& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { drop_elements(o, as<T>(x), as<T>(y)); });
}

}  // namespace foreshard::kernels::reference
