#include "sim/closed_form/block_compute.hpp"

#include <algorithm>
#include <cmath>

#include "model/attention_pairs.hpp"

namespace foreshard::sim::closed_form {
namespace {

constexpr double tile_rows = 128, tile_cols = 256;

double d(std::int64_t n) { return static_cast<double>(n); }

}  // namespace

BlockCompute::BlockCompute(const Step& step, const GpuRates& gpu, const Efficiency& efficiency)
    : s_(step), gpu_(gpu), e_(efficiency), tokens_(d(step.rows * step.seq_len)) {}

double BlockCompute::bytes_per_s() const { return gpu_.memory_bytes * e_.memory; }

/// Tokens × cols × inner, in whole waves of tiles over all multiprocessors.
double BlockCompute::product(double cols, double inner, double flops_per_s) const {
  const double tiles = std::ceil(tokens_ / tile_rows) * std::ceil(cols / tile_cols);
  const double waves = std::ceil(tiles / gpu_.multiprocessors) * gpu_.multiprocessors;
  const double flops = 2 * tokens_ * cols * inner * waves / tiles;
  const double bytes = 2 * (tokens_ * inner + inner * cols + tokens_ * cols);
  return std::max(flops / (flops_per_s * e_.products), bytes / bytes_per_s());
}

double BlockCompute::products() const {
  const double kv = 2 * d(s_.width) / d(s_.heads) * d(s_.kv_heads), rate = gpu_.product_flops;
  const double up = s_.gated_mlp ? 2 : 1;
  return product(d(s_.width) + kv, d(s_.width), rate) + product(d(s_.width), d(s_.width), rate) +
         up * product(d(s_.ffn_width), d(s_.width), rate) + last_product();
}

double BlockCompute::last_product() const { return product(d(s_.width), d(s_.ffn_width), gpu_.product_flops); }

double BlockCompute::head() const { return product(d(s_.vocab_size), d(s_.width), gpu_.half_flops); }

double BlockCompute::attention() const {
  const double head = s_.attention_head_width > 0 ? d(s_.attention_head_width) : d(s_.width) / d(s_.heads);
  const double length = model::equal_causal_length(s_.seq_len, s_.attention_window);
  const double flops = 2 * tokens_ * length * d(s_.heads) * head;
  const double ramp = length / (length + e_.attention_ramp_s);
  return flops / (gpu_.half_flops * e_.attention * ramp);
}

double BlockCompute::attention_backward() const { return 2.5 / e_.attention_backward * attention(); }

double BlockCompute::elementwise() const {
  const double numbers = 2 * 2 * d(s_.width) + 2 * 3 * d(s_.width) + (s_.gated_mlp ? 3 : 2) * d(s_.ffn_width);
  return e_.elementwise * 2 * numbers * tokens_ / bytes_per_s();
}

double BlockCompute::casts() const {
  const double inputs = tokens_ * (3 * d(s_.width) + d(s_.ffn_width));
  return e_.cast_bytes * (inputs + block_parameters(s_)) / bytes_per_s();
}

double BlockCompute::casts_backward() const {
  const double kv = 2 * d(s_.width) / d(s_.heads) * d(s_.kv_heads);
  const double results = 3 * d(s_.width) + kv + (s_.gated_mlp ? 2 : 1) * d(s_.ffn_width);
  return e_.cast_bytes * tokens_ * results / bytes_per_s();
}

double BlockCompute::loss() const { return e_.loss_bytes * tokens_ * d(s_.vocab_size) / bytes_per_s(); }

double BlockCompute::forward() const {
  return std::max(products() + casts() + attention() + elementwise(), e_.issue_s);
}

double BlockCompute::recomputation() const {
  return s_.recomputed * (forward() - (s_.stops_recomputation_early ? last_product() : 0));
}

double BlockCompute::backward() const {
  const double gradients = s_.trained < 1 ? 1 : 2;  // of inputs, and of parameters
  const double adapters = s_.trained < 1 ? e_.adapter_bytes * d(s_.width) * tokens_ / bytes_per_s() : 0;
  const double compute =
      gradients * products() + casts_backward() + attention_backward() + 2 * elementwise() + adapters;
  return std::max(compute, e_.issue_s) + recomputation();
}

}  // namespace foreshard::sim::closed_form
