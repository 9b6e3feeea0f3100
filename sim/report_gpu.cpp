#include "sim/report_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.hpp"

namespace foreshard::sim {
namespace {

double flops_per_s(const Prediction& prediction, FlopConvention convention) {
  const FlopBasis& basis = prediction.gpu->flops;
  return flops_per_token(basis, convention) * basis.tokens / prediction.step_time_s;
}

double utilization(const Prediction& prediction, FlopConvention convention) {
  return flops_utilization(flops_per_s(prediction, convention), 1, prediction.gpu->peak_flops_per_s);
}

}  // namespace

std::string gpu_header(const Prediction& prediction) {
  const OnGpu& gpu = *prediction.gpu;
  return fmt::format("{}: {} x {} a node, {} TFLOP/s at their peak; runtime {}, slowest rank {:.3f} of the mean\n",
                     gpu.cluster, gpu.gpus_per_node, gpu.gpu, gpu.peak_flops_per_s / 1e12, gpu.runtime,
                     gpu.slowest_rank_factor);
}

std::string gpu_fit(const Prediction& prediction) {
  const std::int64_t needed = prediction.arena_bytes + prediction.process_base_bytes;
  return fmt::format("  {}: {} of {}, the arena to the byte, the rest as published\n",
                     prediction.fits() ? "fits" : "DOES NOT FIT", bytes_text(needed),
                     bytes_text(prediction.gpu->memory_bytes));
}

validation::ErrorBar step_time_error_bar(const Prediction& prediction, const plan::Plan& plan) {
  const bool gated = std::ranges::any_of(plan.ops, [](const plan::Op& op) { return op.kind == plan::OpKind::swiglu; });
  return validation::unseen_software_error_bar({.gpu = catalogue_key_of(prediction.gpu->gpu),
                                                .style = prediction.gpu->runtime,
                                                .gated = gated,
                                                .gpus = plan.mesh.world_size()});
}

std::string gpu_sources(const Prediction& prediction) {
  std::string text = "hardware\n";
  for (const std::string& line : prediction.gpu->hardware) text += fmt::format("  {}\n", line);
  return text + fmt::format("error bars\n  residuals of published runs in closed form ({})\n\n",
                            validation::error_bar_command());
}

std::string gpu_utilization(const Prediction& prediction) {
  std::string text = "useful work of a GPU, by who counts\n";
  for (const FlopConvention convention : all_flop_conventions())
    text += fmt::format("  {:<22}{:>9.1f} TFLOP/s{:>7.1f} % of peak\n", name_of(convention),
                        flops_per_s(prediction, convention) / 1e12, 100 * utilization(prediction, convention));
  const FlopBasis& basis = prediction.gpu->flops;
  if (basis.gradient_weights < 1.9 * basis.product_weights)
    text += "  all but the last two count gradients of frozen parameters too, which nobody computes\n";
  return text + "\n";
}

nlohmann::ordered_json gpu_json(const Prediction& prediction, const plan::Plan& plan) {
  const OnGpu& gpu = *prediction.gpu;
  nlohmann::ordered_json by_convention;
  for (const FlopConvention convention : all_flop_conventions())
    by_convention[std::string(name_of(convention))] = {
        {"tflops_per_device", flops_per_s(prediction, convention) / 1e12},
        {"part_of_peak", utilization(prediction, convention)}};
  return {{"cluster", gpu.cluster},
          {"device", gpu.gpu},
          {"runtime", gpu.runtime},
          {"gpus_per_node", gpu.gpus_per_node},
          {"peak_flops_per_s", gpu.peak_flops_per_s},
          {"memory_bytes", gpu.memory_bytes},
          {"fits", prediction.fits()},
          {"slowest_rank_factor", gpu.slowest_rank_factor},
          {"utilization", by_convention},
          {"error_bars", {{"step_time_s", validation::json_of(step_time_error_bar(prediction, plan))}}},
          {"hardware", gpu.hardware}};
}

}  // namespace foreshard::sim
