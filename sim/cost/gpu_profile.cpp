#include "sim/cost/gpu_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace foreshard::embedded {
extern const std::string_view gpu_kernels;
}

namespace foreshard::sim::cost {
namespace {

using Json = nlohmann::json;

Quantity quantity(const Json& json) { return {json.at("value").get<double>(), json.at("source").get<std::string>()}; }

ByArch by_arch(const Json& json) {
  ByArch all{{}, quantity(json.at("other"))};
  for (const auto& [arch, value] : json.items())
    if (arch != "other") all.known.emplace_back(arch, quantity(value));
  return all;
}

GpuProfile::Gemm gemm(const Json& json) {
  return {.start_s = quantity(json.at("start_s")),
          .tile_half_area = quantity(json.at("tile_half_area")),
          .fill_depth = quantity(json.at("fill_depth")),
          .split_start_s = quantity(json.at("split_start_s")),
          .split_bytes_per_s = quantity(json.at("split_bytes_per_s")),
          .rate = by_arch(json.at("rate")),
          .sustained_part = by_arch(json.at("sustained_part")),
          .tf32_part = quantity(json.at("type_part").at("tf32")),
          .f32_part = quantity(json.at("type_part").at("f32")),
          .training_part = quantity(json.at("training_part"))};
}

AttentionRate attention_rate(const Json& json) {
  return {json.at("kernel"), json.at("arch"),        json.at("head"),
          json.at("causal"), json.at("half_length"), quantity(json.at("part"))};
}

GpuProfile profile_of(const Json& json) {
  GpuProfile profile{.gemm = gemm(json.at("gemm"))};
  for (const Json& rate : json.at("attention")) profile.attention.push_back(attention_rate(rate));
  profile.bytes_per_score = quantity(json.at("unfused_attention").at("bytes_per_score"));
  profile.bytes_per_score_causal = quantity(json.at("unfused_attention").at("bytes_per_score_causal"));
  profile.attention_backward_part = quantity(json.at("attention_backward_part"));
  const Json& memory = json.at("memory");
  profile.hbm_part = quantity(memory.at("hbm_part"));
  profile.compiled_traffic = quantity(memory.at("compiled_traffic"));
  profile.l2_speedup = quantity(memory.at("l2_speedup"));
  profile.memory_start_s = quantity(memory.at("start_s"));
  profile.hidden_start_s = quantity(memory.at("hidden_start_s"));
  const Json& host = json.at("host_issue_s");
  profile.eager_issue_s = quantity(host.at("eager"));
  profile.compiled_issue_s = quantity(host.at("compiled"));
  profile.graph_issue_s = quantity(host.at("graph"));
  profile.collective_issue_s = quantity(host.at("collective"));
  profile.retry_s_per_gib = quantity(json.at("retry_s_per_gib"));
  profile.jitter_sigma = quantity(json.at("jitter_sigma"));
  return profile;
}

}  // namespace

const Quantity& ByArch::of(std::string_view arch) const {
  const auto found = std::ranges::find(known, arch, &std::pair<std::string, Quantity>::first);
  return found == known.end() ? other : found->second;
}

GpuProfile parse_gpu_profile(std::string_view text, const std::string& path) {
  try {
    return profile_of(Json::parse(text));
  } catch (const Json::exception& error) {
    throw InputError(ExitCode::bad_input,
                     fmt::format("{}: not a profile of GPU kernels: {}\n  expected: the keys of "
                                 "sim/profiles/gpu_kernels.json, each number as {{\"value\":, \"source\":}}",
                                 path, error.what()));
  }
}

const GpuProfile& gpu_profile() {
  static const GpuProfile profile = parse_gpu_profile(embedded::gpu_kernels, "gpu_kernels.json (built in)");
  return profile;
}

double start_seconds(const GpuProfile& profile, Running running, const Quantity& isolated_s) {
  const double hidden = running == Running::in_step ? profile.hidden_start_s.value : 0;
  return std::max(0.0, isolated_s.value - hidden);
}

}  // namespace foreshard::sim::cost
