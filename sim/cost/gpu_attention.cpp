#include "sim/cost/gpu_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "model/attention_pairs.hpp"
#include "sim/cost/gpu_gemm.hpp"

namespace foreshard::sim::cost {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

bool hopper_or_later(std::string_view arch) { return arch == "sm_90" || arch.starts_with("sm_1"); }

/// How far a known rate is from what is asked for: the architecture counts most, then the mask, then the head's width.
double distance(const AttentionRate& rate, std::string_view arch, const Attention& attention) {
  const bool like = hopper_or_later(rate.arch) == hopper_or_later(arch);
  return (rate.arch == arch ? 0 : 10) + (like ? 0 : 100) + (rate.causal == attention.causal ? 0 : 5) +
         std::abs(std::log2(rate.head / real(attention.head)));
}

const AttentionRate& nearest(const GpuProfile& profile, AttentionKernel kernel, std::string_view arch,
                             const Attention& attention) {
  const AttentionRate* best = nullptr;
  for (const AttentionRate& rate : profile.attention)
    if (rate.kernel == name_of(kernel) && (!best || distance(rate, arch, attention) < distance(*best, arch, attention)))
      best = &rate;
  FORESHARD_EXPECT(best, "a profile has a rate for every fused attention kernel");
  return *best;
}

std::string source_of(const AttentionRate& rate, const GpuRates& gpu, const Attention& attention) {
  const bool known = rate.arch == gpu.arch && rate.head == attention.head;
  return known ? rate.part.source : fmt::format("assumed: as {} head {}: {}", rate.arch, rate.head, rate.part.source);
}

/// Forward reads three and writes one; backward reads these and the gradient, and writes three.
double operand_bytes(const Attention& attention, bool backward) {
  const double operand = real(attention.batch * attention.heads * attention.seq * attention.head);
  return operand * real(attention.element_bytes) * (backward ? 8 : 4);
}

/// Of the causal attention without a window that goes over as many keys.
double equal_length(const Attention& attention) {
  const bool windowed = attention.causal && !attention.masked;
  return model::equal_causal_length(attention.seq, windowed ? attention.window : 0);
}

double fused_seconds(const GpuProfile& profile, const GpuRates& gpu, const Attention& attention, AttentionKernel kernel,
                     bool backward, std::string* source) {
  const AttentionRate& rate = nearest(profile, kernel, gpu.arch, attention);
  if (source) *source = source_of(rate, gpu, attention);
  const double length = equal_length(attention), ramp = length / (length + rate.half_length);
  const double part = rate.part.value * ramp * (backward ? profile.attention_backward_part.value : 1);
  return std::max(attention_flops(attention, backward) / (part * gpu.half_flops),
                  operand_bytes(attention, backward) / (profile.hbm_part.value * gpu.hbm_bytes_per_s));
}

double unfused_seconds(const GpuProfile& profile, const GpuRates& gpu, const Attention& attention, bool backward,
                       Running running, std::string* source) {
  const Quantity& bytes = attention.causal ? profile.bytes_per_score_causal : profile.bytes_per_score;
  if (source) *source = bytes.source;
  const double scores = real(attention.batch * attention.heads * attention.seq) * real(attention.seq);
  const double flops = 4 * scores * real(attention.head) * (backward ? 2.5 : 1);
  const double moved = scores * bytes.value * real(attention.element_bytes) / 2 * (backward ? 2 : 1) +
                       operand_bytes(attention, backward);
  return flops / gemm_flops_per_s(profile, gpu, Math::half, running) +
         moved / (profile.hbm_part.value * gpu.hbm_bytes_per_s);
}

}  // namespace

std::string_view name_of(AttentionKernel kernel) {
  constexpr std::array<std::string_view, 6> names{"unfused", "fa1", "triton", "fa2", "fa3", "cudnn"};
  return names[static_cast<std::size_t>(kernel)];
}

AttentionKernel own_attention(std::string_view arch) {
  return hopper_or_later(arch) ? AttentionKernel::cudnn : AttentionKernel::fa2;
}

double attention_flops(const Attention& attention, bool backward) {
  const double rows = 4 * real(attention.batch * attention.heads * attention.seq) * real(attention.head);
  const bool halved = attention.causal && !attention.masked;
  return rows * equal_length(attention) * (halved ? 0.5 : 1) * (backward ? 2.5 : 1);
}

double attention_seconds(const GpuProfile& profile, const GpuRates& gpu, const Attention& attention,
                         AttentionKernel kernel, bool backward, Running running, std::string* source) {
  const double start = start_seconds(profile, running, profile.gemm.start_s);
  return start + (kernel == AttentionKernel::unfused
                      ? unfused_seconds(profile, gpu, attention, backward, running, source)
                      : fused_seconds(profile, gpu, attention, kernel, backward, source));
}

}  // namespace foreshard::sim::cost
