#include "engine/cuda/attention_choices.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "engine/attentions.hpp"
#include "engine/cuda/memory.hpp"
#include "engine/cuda/stopwatch.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::Attention;
using kernels::Const;
using kernels::Mut;
using kernels::cuda::Kernels;

constexpr const char* by_cudnn = "cudnn";
/// How far results may be apart, of the largest of them: both round probabilities and results to halves.
constexpr float tolerance = 0.03F;

/// Numbers of a type on the device.
class Numbers {
 public:
  Numbers(std::int64_t count, DType dtype) : count_(count), dtype_(dtype), memory_(count * size_bytes(dtype)) {}
  Const read() const { return {memory_.data(), dtype_}; }
  Mut written() const { return {memory_.data(), dtype_}; }

  void make_up(Kernels& kernels, std::uint64_t seed) const {
    std::vector<float> values(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(normal(seed, i));
    const DeviceMemory wide(count_ * size_bytes(DType::f32));
    copy(wide.data(), values.data(), cudaMemcpyHostToDevice);
    kernels.cast(count_, false, {wide.data(), DType::f32}, written());
    kernels::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  std::vector<float> values(Kernels& kernels) const {
    std::vector<float> values(static_cast<std::size_t>(count_));
    const DeviceMemory wide(count_ * size_bytes(DType::f32));
    kernels.cast(count_, false, read(), {wide.data(), DType::f32});
    kernels::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    copy(values.data(), wide.data(), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind) const {
    kernels::cuda::check(cudaMemcpy(to, from, static_cast<std::size_t>(count_) * sizeof(float), kind), "cudaMemcpy");
  }

  std::int64_t count_;
  DType dtype_;
  DeviceMemory memory_;
};

bool agree(const std::vector<float>& one, const std::vector<float>& other) {
  float largest = 0, apart = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!std::isfinite(one[i]) || !std::isfinite(other[i])) return false;
    largest = std::max(largest, std::fabs(one[i]));
    apart = std::max(apart, std::fabs(one[i] - other[i]));
  }
  return apart <= tolerance * largest;
}

class Trial {
 public:
  Trial(const AttentionCall& call, const Stream& stream, Kernels& kernels)
      : call_(call), kernels_(kernels), stopwatch_(stream) {
    q_.make_up(kernels, 1), dy_.make_up(kernels, 2);
    if (!call.packed) k_.make_up(kernels, 3), v_.make_up(kernels, 4);
  }

  /// Of forward and backward as they are set.
  double seconds() {
    return stopwatch_.seconds([this] { run(); });
  }

  /// Of y and the gradients of queries, keys and values, as they are set.
  std::vector<std::vector<float>> results() {
    run();
    std::vector<std::vector<float>> all;
    for (const Numbers* numbers : {&y_, &dq_, &dk_, &dv_}) all.push_back(numbers->values(kernels_));
    return all;
  }

 private:
  Const of_key(const Numbers& numbers) const { return call_.packed ? Const{} : numbers.read(); }
  Mut to_key(const Numbers& numbers) const { return call_.packed ? Mut{} : numbers.written(); }
  void run() {
    kernels_.attention(o_, q_.read(), of_key(k_), of_key(v_), {}, y_.written(), log_sum_exp_.written());
    kernels_.attention_backward(o_, dy_.read(), q_.read(), of_key(k_), of_key(v_), {}, y_.read(), log_sum_exp_.read(),
                                dq_.written(), to_key(dk_), to_key(dv_), {});
  }

  const AttentionCall& call_;
  Kernels& kernels_;
  Stopwatch stopwatch_;
  const Attention& o_ = call_.shape;
  std::int64_t rows_ = o_.batch * o_.seq, queries_ = rows_ * o_.heads * o_.width,
               in_first_ = call_.packed ? 3 * queries_ : queries_,
               keys_ = call_.packed ? 0 : rows_ * o_.keys() * o_.width;
  Numbers q_{in_first_, call_.dtype}, k_{keys_, call_.dtype}, v_{keys_, call_.dtype}, y_{queries_, call_.dtype},
      log_sum_exp_{rows_ * o_.heads, DType::f32}, dy_{queries_, call_.dtype}, dq_{in_first_, call_.dtype},
      dk_{keys_, call_.dtype}, dv_{keys_, call_.dtype};
};

bool set_by_cudnn(const AttentionCall& call, Kernels& kernels, bool wanted) {
  return !call.biased && kernels.set_attention_by_cudnn(call.shape, call.dtype, wanted);
}

/// Whether cuDNN is right, as far as our own kernels are, and faster. Leaves the way of `kernels` undefined.
bool cudnn_is_better(const AttentionCall& call, const Stream& stream, Kernels& kernels) {
  Trial trial(call, stream, kernels);
  const auto seen = trial.results();
  const double seconds = trial.seconds();
  set_by_cudnn(call, kernels, false);
  const auto ours = trial.results();
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!agree(ours[i], seen[i])) {
      log_warn("{}: cuDNN's results are not ours; it is not used", name_of(call));
      return false;
    }
  return seconds < trial.seconds();
}

}  // namespace

KernelChoices measure_attention(const plan::Plan& plan, const Stream& stream, Kernels& kernels) {
  KernelChoices choices;
  for (const AttentionCall& call : attentions_of(plan)) try {
      if (set_by_cudnn(call, kernels, true) && cudnn_is_better(call, stream, kernels))
        choices.emplace(name_of(call), by_cudnn);
      set_by_cudnn(call, kernels, false);
    } catch (const LibraryError&) {  // no memory left for the trial
      continue;
    }
  return choices;
}

void use_attention(const KernelChoices& choices, const plan::Plan& plan, Kernels& kernels) {
  for (const AttentionCall& call : attentions_of(plan)) {
    const auto chosen = choices.find(name_of(call));
    const bool wanted = chosen != choices.end() && chosen->second == by_cudnn;
    if (!set_by_cudnn(call, kernels, wanted) && wanted)
      throw InputError(ExitCode::bad_input,
                       fmt::format("\"{}\" was chosen for {}, and cuDNN has no such kernel here; begin the run anew, "
                                   "without this checkpoint's choices",
                                   by_cudnn, chosen->first));
  }
}

}  // namespace foreshard::engine::cuda
