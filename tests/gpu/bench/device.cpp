#include "device.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/random.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::gpu_bench {
namespace {

using engine::cuda::Event;
using kernels::cuda::check;

constexpr std::int64_t pattern_count = 1 << 20;

template <class T>
std::vector<T> pattern(std::int64_t count, float spread) {
  std::vector<T> values(static_cast<std::size_t>(std::min(count, pattern_count)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(spread * static_cast<float>(uniform(philox(7, 0, i)[0]) - 0.5));
  return values;
}

void copy_in(std::byte* to, const void* from, std::int64_t bytes) {
  check(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice), "cudaMemcpy");
}

template <class T>
void fill(const engine::cuda::DeviceMemory& memory, std::int64_t count, float spread) {
  const std::vector<T> values = pattern<T>(count, spread);
  const auto one = static_cast<std::int64_t>(values.size() * sizeof(T));
  for (std::int64_t at = 0; at < memory.size_bytes(); at += one)
    copy_in(memory.data() + at, values.data(), std::min(one, memory.size_bytes() - at));
}

}  // namespace

Device::Device() : stream_(engine::cuda::Stream::Priority::normal), workspace_(workspace_bytes) {
  kernels_ = kernels::cuda::make(
      {.stream = stream_.get(), .workspace = workspace_.data(), .workspace_bytes = workspace_.size_bytes()});
}

Timing Device::time(const std::function<void()>& queue, int repeats, int calls) const {
  const Event begin(Event::Kind::time), end(Event::Kind::time);
  std::vector<double> seconds;
  queue();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    stream_.record(begin);
    for (int call = 0; call < calls; ++call) queue();
    stream_.record(end);
    check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    seconds.push_back(engine::cuda::elapsed_ns(begin, end) * 1e-9 / calls);
  }
  return timing_of(std::move(seconds));
}

Numbers::Numbers(std::int64_t count, DType dtype, float spread) : dtype_(dtype), memory_(count * size_bytes(dtype)) {
  FORESHARD_EXPECT(dtype == DType::bf16 || dtype == DType::f32, "numbers are bf16 or f32");
  dtype == DType::bf16 ? fill<BFloat16>(memory_, count, spread) : fill<float>(memory_, count, spread);
}

Tokens::Tokens(std::int64_t count, std::int64_t vocab) : memory_(count * size_bytes(DType::i32)) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::int32_t>(philox(9, 0, i)[0] % static_cast<std::uint64_t>(vocab));
  copy_in(memory_.data(), tokens.data(), memory_.size_bytes());
  distinct_ = static_cast<std::int64_t>(std::set(tokens.begin(), tokens.end()).size());
}

Timing timing_of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const std::size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 10], seconds[n - 1 - n / 10]};
}

}  // namespace foreshard::gpu_bench
