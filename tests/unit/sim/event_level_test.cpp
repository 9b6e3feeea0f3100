// Published runs by simulated steps of PyTorch, to which nothing was fitted.
#include "sim/validation/event_level.hpp"

#include <gtest/gtest.h>

#include "sim/validation/validate.hpp"

namespace foreshard::sim::validation {
namespace {

/// pytorch/torchtitan, PR 165: Llama 2 7B, FSDP1, eager, full recomputation, 8 H100 of 96 GB; peak active memory of
/// 23.58 GiB, reserved 32.14 GiB.
PublishedRun torchtitan_7b() {
  PublishedRun run;
  run.layers = 32, run.width = 4096, run.heads = run.kv_heads = 32, run.ffn_width = 11008, run.vocab_size = 32000;
  run.seq_len = 2048, run.micro_batch = 8, run.gated_mlp = true, run.tied_head = false;
  run.gpu = "h100-sxm-96gb", run.gpus = run.gpus_per_node = run.shard_degree = 8;
  run.recomputed = 1, run.reduce_bytes = 4, run.stops_recomputation_early = true;
  return run;
}

EventLevel of(const PublishedRun& run) { return std::get<EventLevel>(event_level(run, closed_form::Profile())); }
std::string why_not(const PublishedRun& run) { return std::get<Skip>(event_level(run, closed_form::Profile())).reason; }

TEST(EventLevel, PeakMemoryIsTheAllocatorsOfTheKind) {
  constexpr double gibibyte = 1073741824;
  PublishedRun run = torchtitan_7b();
  run.peak_kind = PeakKind::active;
  EXPECT_NEAR(*of(run).peak_bytes / gibibyte, 23.58, 0.03 * 23.58);
  run.peak_kind = PeakKind::reserved;
  EXPECT_NEAR(*of(run).peak_bytes / gibibyte, 32.14, 0.03 * 32.14);
  run.compiled = true;
  EXPECT_FALSE(of(run).peak_bytes) << "fused operators keep other tensors";
}

/// A step of n micro-batches is the first and n − 1 times what the second adds.
TEST(EventLevel, MicroBatchesBehindTheSecondAreLikeIt) {
  const auto seconds = [](std::int64_t micro_batches) {
    PublishedRun run = torchtitan_7b();
    run.layers = 2, run.micro_batch = 1, run.micro_batches = micro_batches;
    return double(micro_batches) * 2048 / of(run).tokens_per_s;
  };
  EXPECT_NEAR(seconds(5) - seconds(4), seconds(2) - seconds(1), 1e-9);
}

TEST(EventLevel, WhatIsNotSimulatedSaysSo) {
  PublishedRun run = torchtitan_7b();
  run.lora = true;
  EXPECT_NE(why_not(run), "");
  run = torchtitan_7b(), run.recomputed = 0.5;
  EXPECT_EQ(why_not(run), "a part is recomputed");
  run = torchtitan_7b(), run.micro_batch = 256;
  EXPECT_EQ(why_not(run), "said to run out of memory");
  run = torchtitan_7b(), run.gpu = "T4";
  EXPECT_EQ(why_not(run), "no cluster of such GPUs is known");
}

TEST(EventLevel, StandsBesideTheClosedForm) {
  CsvTable table = read_csv(FORESHARD_MEASUREMENTS_DIR "/vectorlm.csv");
  Validation validation;
  validate(table, closed_form::Profile(), validation, Level::event);
  const Errors errors = errors_of(validation.event_throughput);
  EXPECT_GE(errors.rows, 6U);
  EXPECT_LE(errors.mape_pct, 4.0);
  EXPECT_EQ(table.header.size(), table.rows[0].size());
  EXPECT_EQ(table.header.back(), "not_simulated");
  EXPECT_EQ(to_json(validation).at("event").at("rows_used"), errors.rows);
}

}  // namespace
}  // namespace foreshard::sim::validation
