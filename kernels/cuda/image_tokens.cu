// Images as sequences: a class token, then patches. Bound by memory: each operand is read and each result written once.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 256;

/// Calls f(element) for each of `count` elements, a thread each.
template <class F>
__device__ void for_element(std::int64_t count, F f) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) f(i);
}

template <class T>
__global__ void place(ImageTokens o, const T* patches, const T* class_token, const T* positions, T* x) {
  for_element(o.images * o.seq * o.cols, [&](std::int64_t i) {
    const std::int64_t row = i / o.cols, column = i % o.cols, image = row / o.seq, token = row % o.seq;
    const T from = token == 0 ? class_token[column] : patches[(row - image - 1) * o.cols + column];
    x[i] = narrowed<T>(widened(from) + widened(positions[token * o.cols + column]));
  });
}

template <class T>
__global__ void copy_patches(ImageTokens o, const T* dx, T* dpatches) {
  const std::int64_t of_image = (o.seq - 1) * o.cols;
  for_element(o.images * of_image, [&](std::int64_t i) { dpatches[i] = dx[i + (i / of_image + 1) * o.cols]; });
}

/// The first `tokens` tokens of all images, summed in order of images.
template <class T, class Grad>
__global__ void sum_images(ImageTokens o, std::int64_t tokens, bool accumulate, const T* dx, Grad* sums) {
  for_element(tokens * o.cols, [&](std::int64_t i) {
    float sum = accumulate ? widened(sums[i]) : 0.0F;
    for (std::int64_t image = 0; image < o.images; ++image) sum += widened(dx[image * o.seq * o.cols + i]);
    sums[i] = narrowed<Grad>(sum);
  });
}

template <class T>
__global__ void take_first(ImageTokens o, const T* x, T* y) {
  for_element(o.images * o.cols, [&](std::int64_t i) { y[i] = x[i / o.cols * o.seq * o.cols + i % o.cols]; });
}

template <class T>
__global__ void give_first(ImageTokens o, const T* dy, T* dx) {
  for_element(o.images * o.seq * o.cols, [&](std::int64_t i) {
    const std::int64_t row = i / o.cols;
    dx[i] = row % o.seq == 0 ? dy[row / o.seq * o.cols + i % o.cols] : narrowed<T>(0.0F);
  });
}

template <class Kernel, class... Arguments>
void run(const Queue& queue, std::int64_t count, Kernel kernel, const Arguments&... arguments) {
  if (count == 0) return;
  launch(kernel, static_cast<unsigned>(blocks_for(count, threads)), threads, 0, queue.stream, arguments...);
}

}  // namespace

void image_tokens(const Queue& queue, const ImageTokens& o, Const patches, Const class_token, Const positions, Mut x) {
  by_number(x.dtype, [&]<class T>(T) {
    run(queue, o.images * o.seq * o.cols, place<Device<T>>, o, elements<T>(patches), elements<T>(class_token),
        elements<T>(positions), elements<T>(x));
  });
}

void image_tokens_backward(const Queue& queue, const ImageTokens& o, bool accumulate, Const dx, Mut dpatches,
                           Mut dclass_token, Mut dpositions) {
  by_number(dx.dtype, [&]<class T>(T) {
    if (dpatches.data)
      run(queue, o.images * (o.seq - 1) * o.cols, copy_patches<Device<T>>, o, elements<T>(dx), elements<T>(dpatches));
    by_result_type<T>(type_of_present(dclass_token, dpositions, dx.dtype), [&]<class Grad>(Grad) {
      const auto sum = [&](std::int64_t tokens, const Mut& to) {
        if (to.data)
          run(queue, tokens * o.cols, sum_images<Device<T>, Device<Grad>>, o, tokens, accumulate, elements<T>(dx),
              elements<Grad>(to));
      };
      sum(1, dclass_token);
      sum(o.seq, dpositions);
    });
  });
}

void first_token(const Queue& queue, const ImageTokens& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    run(queue, o.images * o.cols, take_first<Device<T>>, o, elements<T>(x), elements<T>(y));
  });
}

void first_token_backward(const Queue& queue, const ImageTokens& o, Const dy, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) {
    run(queue, o.images * o.seq * o.cols, give_first<Device<T>>, o, elements<T>(dy), elements<T>(dx));
  });
}

}  // namespace foreshard::kernels::cuda
