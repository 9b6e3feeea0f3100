// A block a row. Forward reads the logits once; backward reads them and writes dlogits once. Bound by memory, with one
// exponential an element close behind.
#include <cfloat>
#include <cmath>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/warp.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 256;

__device__ float exp_of(float x) { return exp2f(x * 1.44269504088896341F); }

/// Σ exp(x − highest) of the numbers seen so far, of which none is higher. Begins below all of them but −∞.
struct Online {
  float highest = -FLT_MAX, total = 0;

  template <class T, int n>
  __device__ void add(const Pack<T, n>& x) {
    float block = -FLT_MAX;
    for (int k = 0; k < n; ++k) block = fmaxf(block, widened(x.v[k]));
    if (block > highest) {
      total *= exp_of(highest - block);
      highest = block;
    }
    for (int k = 0; k < n; ++k) total += exp_of(widened(x.v[k]) - highest);
  }
  /// log Σ exp of what all threads of the block have seen.
  __device__ double log_of_block() const {
    const float highest_of_all = over_block<threads>(highest, Larger{});
    const float sum = over_block<threads>(total * exp_of(highest - highest_of_all), Sum{});
    return static_cast<double>(highest_of_all) + log(static_cast<double>(sum));
  }
};

template <int n, class T>
__global__ void find_losses(Rows o, const T* logits, const std::int32_t* targets, float* log_sum_exp, double* losses) {
  const std::int64_t row = blockIdx.x;
  const T* x = logits + row * o.cols;
  Online online;
  for (std::int64_t at = threadIdx.x * n; at < o.cols; at += threads * n) online.add(load<n>(x + at));
  const double lse = online.log_of_block();
  if (threadIdx.x > 0) return;
  const std::int32_t target = targets[row];
  log_sum_exp[row] = static_cast<float>(lse);
  losses[row] = target < 0 ? 0.0 : target < o.cols ? lse - static_cast<double>(widened(x[target])) : double{NAN};
}

struct Smaller {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a < b ? a : b; }
};

__device__ void note_fault(Step* step, std::int64_t rows, const float* log_sum_exp) {
  std::int64_t first = rows;
  for (std::int64_t row = threadIdx.x; row < rows; row += threads)
    if (!isfinite(log_sum_exp[row])) first = min(first, row);
  first = over_block<threads>(first, Smaller{});
  if (threadIdx.x > 0) return;
  step->fault_micro_batch = step->micro_batch;
  step->fault_row = first < rows ? first : -1;
}

/// One block, so that the order is one: every thread takes every 256th row.
__global__ void add_losses(std::int64_t rows, const double* losses, const std::int32_t* targets,
                           const float* log_sum_exp, double* loss, Step* step) {
  double sum = 0, valid = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += threads) {
    sum += losses[row];
    valid += targets[row] < 0 ? 0 : 1;
  }
  sum = loss[0] + over_block<threads>(sum, Sum{});
  valid = loss[1] + over_block<threads>(valid, Sum{});
  const bool fault = step && step->fault_micro_batch < 0 && !isfinite(sum);
  __syncthreads();  // all have read what is now written
  if (threadIdx.x == 0) {
    loss[0] = sum;
    loss[1] = valid;
  }
  if (fault) note_fault(step, rows, log_sum_exp);
}

template <int n, class T>
__global__ void differentiate(Rows o, const Step* step, float scale, const T* logits, const std::int32_t* targets,
                              const float* log_sum_exp, T* dlogits) {
  const std::int64_t row = blockIdx.x, first = row * o.cols;
  const std::int32_t target = targets[row];
  const float lse = log_sum_exp[row];
  if (step) scale = static_cast<float>(step->loss_scale);
  for (std::int64_t at = threadIdx.x * n; at < o.cols; at += threads * n) {
    Pack<T, n> x = load<n>(logits + first + at);
    for (int k = 0; k < n; ++k) {
      const float p = exp_of(widened(x.v[k]) - lse), d = scale * (at + k == target ? p - 1.0F : p);
      x.v[k] = narrowed<T>(target < 0 ? 0.0F : d);
    }
    store(dlogits + first + at, x);
  }
}

}  // namespace

void cross_entropy(const Queue& queue, Step* step, const Rows& o, Const logits, Const targets, Mut loss,
                   Mut log_sum_exp) {
  if (o.rows == 0) return;
  auto* losses = queue.partial<double>(o.rows);
  const auto* target = as<std::int32_t>(targets);
  auto* lse = as<float>(log_sum_exp);
  by_number(logits.dtype, [&]<class T>(T) {
    constexpr int n = pack_of<T>;
    const Device<T>* x = elements<T>(logits);
    launch(o.cols % n == 0 && aligned(x) ? find_losses<n, Device<T>> : find_losses<1, Device<T>>,
           static_cast<unsigned>(o.rows), threads, 0, queue.stream, o, x, target, lse, losses);
  });
  launch(add_losses, 1, threads, 0, queue.stream, o.rows, losses, target, lse, as<double>(loss), step);
}

void cross_entropy_backward(const Queue& queue, const Step* step, const Rows& o, float scale, Const logits,
                            Const targets, Const log_sum_exp, Mut dlogits) {
  if (o.rows == 0) return;
  by_number(dlogits.dtype, [&]<class T>(T) {
    constexpr int n = pack_of<T>;
    const Device<T>* x = elements<T>(logits);
    Device<T>* dx = elements<T>(dlogits);
    launch(o.cols % n == 0 && aligned(x, dx) ? differentiate<n, Device<T>> : differentiate<1, Device<T>>,
           static_cast<unsigned>(o.rows), threads, 0, queue.stream, o, step, scale, x, as<std::int32_t>(targets),
           as<float>(log_sum_exp), dx);
  });
}

}  // namespace foreshard::kernels::cuda
