#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/validation/csv_table.hpp"

namespace foreshard::sim::validation {

/// A run that somebody measured and published: one row of a table of measurements, as printed. What is not printed is
/// absent or empty. tests/data/measurements/README.md describes the columns.
struct PublishedRow {
  std::string source, ref, model;
  std::optional<double> params_b;
  std::optional<std::int64_t> layers, d_model, heads, kv_heads, d_ff, vocab, seq_len;
  std::string gpu;
  std::optional<double> gpu_mem_gb;
  std::optional<std::int64_t> n_gpus, gpus_per_node;
  std::string interconnect, strategy, reshard_after_forward;
  std::optional<std::int64_t> tp, pp, cp;
  std::string precision;
  std::optional<std::int64_t> micro_batch_per_gpu, grad_accum, global_batch_tokens;
  std::string activation_ckpt, offload, compile_or_flash;
  std::optional<double> tokens_per_s_per_gpu, step_time_s, tflops_per_gpu, mfu_pct, hfu_pct, peak_mem_gib;
  std::string peak_mem_kind, oom, notes, plain_dp, exclude;
};

/// The rows of a table. Throws InputError(bad_input) that names the file, the row, the column and the value where a
/// number is expected.
std::vector<PublishedRow> published_rows(const CsvTable& table);

}  // namespace foreshard::sim::validation
