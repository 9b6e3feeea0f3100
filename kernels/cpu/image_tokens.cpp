#include <algorithm>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// Calls f(image) for all images, shared among the team.
template <class F>
void for_images(const ImageTokens& o, F f) {
  share(o.images, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) f(image);
  });
}

template <class T>
void place(const ImageTokens& o, const T* patches, const T* class_token, const T* positions, T* x) {
  const std::int64_t rest = (o.seq - 1) * o.cols;
  for_images(o, [=, &o](std::int64_t image) {
    T* const to = x + image * o.seq * o.cols;
    map(o.cols, to, plus, class_token, positions);
    map(rest, to + o.cols, plus, patches + image * rest, positions + o.cols);
  });
}

template <class T>
void copy_patches(const ImageTokens& o, const T* dx, T* dpatches) {
  const std::int64_t rest = (o.seq - 1) * o.cols;
  for_images(o, [=, &o](std::int64_t image) {
    std::copy_n(dx + (image * o.seq + 1) * o.cols, rest, dpatches + image * rest);
  });
}

/// Sums the first `count` numbers of all images, in order of images.
template <class T, class Grad>
void sum_images(const ImageTokens& o, std::int64_t count, bool accumulate, const T* dx, Grad* sums) {
  share(count, strip_cols, [=, &o](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; j += strip_cols) {
      const std::int64_t n = std::min(strip_cols, end - j);
      float total[strip_cols] = {};
      if (accumulate) map(n, total, same, sums + j);
      for (std::int64_t image = 0; image < o.images; ++image)
        map(n, total, plus, total, dx + image * o.seq * o.cols + j);
      map(n, sums + j, same, total);
    }
  });
}

template <class T>
void first(const ImageTokens& o, const T* x, T* y) {
  for (std::int64_t image = 0; image < o.images; ++image)
    std::copy_n(x + image * o.seq * o.cols, o.cols, y + image * o.cols);
}

template <class T>
void first_back(const ImageTokens& o, const T* dy, T* dx) {
  for_images(o, [=, &o](std::int64_t image) {
    T* const to = dx + image * o.seq * o.cols;
    std::copy_n(dy + image * o.cols, o.cols, to);
    std::fill(to + o.cols, to + o.seq * o.cols, T{});
  });
}

}  // namespace

void image_tokens(const ImageTokens& o, Const patches, Const class_token, Const positions, Mut x) {
  by_number(x.dtype, [&]<class T>(T) { place(o, as<T>(patches), as<T>(class_token), as<T>(positions), as<T>(x)); });
}

void image_tokens_backward(const ImageTokens& o, bool accumulate, Const dx, Mut dpatches, Mut dclass_token,
                           Mut dpositions) {
  by_number(dx.dtype, [&]<class T>(T) {
    if (dpatches.data) copy_patches(o, as<T>(dx), as<T>(dpatches));
    by_result_type<T>(type_of_present(dclass_token, dpositions, dx.dtype), [&]<class Grad>(Grad) {
      if (dclass_token.data) sum_images(o, o.cols, accumulate, as<T>(dx), as<Grad>(dclass_token));
      if (dpositions.data) sum_images(o, o.seq * o.cols, accumulate, as<T>(dx), as<Grad>(dpositions));
    });
  });
}

void first_token(const ImageTokens& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { first(o, as<T>(x), as<T>(y)); });
}

void first_token_backward(const ImageTokens& o, Const dy, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) { first_back(o, as<T>(dy), as<T>(dx)); });
}

}  // namespace foreshard::kernels::cpu
