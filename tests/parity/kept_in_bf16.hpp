#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/half.hpp"
#include "local_run.hpp"

/// Runs whose parameters are kept and updated in bf16.
namespace foreshard::parity {

inline const model::GptConfig tied{
    .layers = 3, .width = 24, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .tied_head = true};
inline constexpr std::int64_t tied_seq = 8, tied_rows = 16;

inline RunSetup in_double(const plan::Mesh& mesh, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(tied, tied_seq, tied_rows, mesh, micro_batches)};
  setup.batch = [](std::int64_t step) { return formula_batch(tied_rows, tied_seq, tied.vocab_size, step % 3, 5); };
  return setup;
}

inline RunSetup kept_in_bf16(const plan::Mesh& mesh, int micro_batches = 1) {
  RunSetup setup = in_double(mesh, micro_batches);
  setup.dtype = DType::f32;
  setup.reference = false;
  setup.settings.schedule.precision = {.parameters = DType::bf16};
  setup.settings.schedule.master = DType::bf16;
  return setup;
}

/// Without a token that counts, gradients are zero, and updates nothing but decay: no order of sums is in them, so runs
/// of any number of ranks are the same but for who rounds what. Losses are 0/0.
inline RunSetup decaying(const plan::Mesh& mesh) {
  RunSetup setup = kept_in_bf16(mesh);
  setup.optimizer.groups = {{.patterns = {"*"}, .weight_decay = 0.3}};
  setup.batch = [](std::int64_t step) { return formula_batch(tied_rows, tied_seq, tied.vocab_size, step, 1); };
  return setup;
}

/// Each step begins with the same parameters, all one, and does the same to them: what differs are random bits.
inline void expect_other_bits_in_each_step(RunSetup setup) {
  setup.learning_rates.assign(4, 1e-2);
  setup.before_step = [](train::TrainingRank& rank, int, std::int64_t) {
    const BFloat16 one(1.0F);
    for (std::uint32_t unit = 0; unit < rank.plan().units.size(); ++unit)
      rank.change(rank.parameter_shard(unit), [&](std::span<std::byte> bytes) {
        for (std::size_t at = 0; at < bytes.size(); at += sizeof one) std::memcpy(bytes.data() + at, &one, sizeof one);
      });
  };
  std::vector<std::vector<std::byte>> seen;
  setup.after_step = [&](const StepEnd& end) {
    if (end.communicator.rank() == 0) seen.push_back(end.rank.copy_of(end.rank.parameter_shard(1)));
  };
  run(setup);
  for (std::size_t step = 1; step < seen.size(); ++step)
    for (std::size_t before = 0; before < step; ++before) EXPECT_NE(seen[before], seen[step]) << before << ' ' << step;
}

}  // namespace foreshard::parity
