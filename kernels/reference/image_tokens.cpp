#include <algorithm>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
void place(const ImageTokens& o, const T* patches, const T* class_token, const T* positions, T* x) {
  using C = Computed<T>;
  for (std::int64_t row = 0; row < o.images * o.seq; ++row) {
    const std::int64_t image = row / o.seq, token = row % o.seq;
    const T* from = token == 0 ? class_token : patches + (row - image - 1) * o.cols;
    for (std::int64_t j = 0; j < o.cols; ++j)
      x[row * o.cols + j] = static_cast<T>(static_cast<C>(from[j]) + static_cast<C>(positions[token * o.cols + j]));
  }
}

template <class T>
void copy_patches(const ImageTokens& o, const T* dx, T* dpatches) {
  const std::int64_t count = (o.seq - 1) * o.cols;
  for (std::int64_t image = 0; image < o.images; ++image)
    std::copy_n(dx + (image * o.seq + 1) * o.cols, count, dpatches + image * count);
}

/// Sums the first `tokens` tokens of all images.
template <class T, class Grad>
void sum_images(const ImageTokens& o, std::int64_t tokens, bool accumulate, const T* dx, Grad* sums) {
  for (std::int64_t i = 0; i < tokens * o.cols; ++i) {
    double sum = accumulate ? static_cast<double>(sums[i]) : 0;
    for (std::int64_t image = 0; image < o.images; ++image) sum += static_cast<double>(dx[image * o.seq * o.cols + i]);
    sums[i] = static_cast<Grad>(sum);
  }
}

template <class T>
void first(const ImageTokens& o, const T* x, T* y) {
  for (std::int64_t image = 0; image < o.images; ++image)
    std::copy_n(x + image * o.seq * o.cols, o.cols, y + image * o.cols);
}

template <class T>
void first_back(const ImageTokens& o, const T* dy, T* dx) {
  std::fill_n(dx, o.images * o.seq * o.cols, T{});
  for (std::int64_t image = 0; image < o.images; ++image)
    std::copy_n(dy + image * o.cols, o.cols, dx + image * o.seq * o.cols);
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
      if (dclass_token.data) sum_images(o, 1, accumulate, as<T>(dx), as<Grad>(dclass_token));
      if (dpositions.data) sum_images(o, o.seq, accumulate, as<T>(dx), as<Grad>(dpositions));
    });
  });
}

void first_token(const ImageTokens& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { first(o, as<T>(x), as<T>(y)); });
}

void first_token_backward(const ImageTokens& o, Const dy, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) { first_back(o, as<T>(dy), as<T>(dx)); });
}

}  // namespace foreshard::kernels::reference
