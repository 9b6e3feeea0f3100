// mpirun -n 2 bench_step [LAYERS WIDTH HEADS VOCAB SEQ ROWS]: training steps beside the oneDNN matrix product, and
// traced steps beside untraced ones, alternated in one run. Default: 3 M parameters, 512 tokens a rank (6 192 6 2048
// 256 2).
#include <fmt/format.h>

#include <cstdlib>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "comm/mpi_communicator.hpp"
#include "engine/cpu_executor.hpp"
#include "trace/analysis.hpp"
#include "train/training_rank.hpp"

namespace {

using namespace foreshard;

constexpr int rounds = 9, steps_per_round = 4;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

train::Batch synthetic_batch(const plan::Settings& settings) {
  train::Batch batch;
  for (std::int64_t i = 0; i < settings.batch.batch * settings.batch.seq; ++i) {
    batch.tokens.push_back(
        static_cast<std::int32_t>((i * i * 7 + 3 * i) % model::dimensions(settings.model).vocab_size));
    batch.targets.push_back(static_cast<std::int32_t>((i * 5 + 1) % model::dimensions(settings.model).vocab_size));
  }
  return batch;
}

/// Best of a few 1024³ products, FLOP/s of this rank while all ranks do the same.
class MatmulRate {
 public:
  explicit MatmulRate(kernels::Backend& kernels) : kernels_(kernels), a_(n * n, 0.5F), b_(n * n, 0.25F), c_(n * n) {}
  double measure() {
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      const std::int64_t began = now_ns();
      kernels_.matmul({.m = n, .n = n, .k = n, .transpose_b = true}, {a_.data(), DType::f32}, {b_.data(), DType::f32},
                      {}, {c_.data(), DType::f32});
      best = std::max(best, 2.0 * n * n * n / seconds(now_ns() - began));
    }
    return best;
  }

 private:
  static constexpr std::int64_t n = 1024;
  kernels::Backend& kernels_;
  std::vector<float> a_, b_, c_;
};

plan::Settings settings_of(int argc, char** argv, int world) {
  const auto number = [&](int index, std::int64_t initial) { return argc > index ? std::atoll(argv[index]) : initial; };
  plan::Settings settings{.model = model::GptConfig{.layers = number(1, 6),
                                                    .width = number(2, 192),
                                                    .heads = number(3, 6),
                                                    .vocab_size = number(4, 2048),
                                                    .max_seq_len = number(5, 256)}};
  settings.batch = {.batch = number(6, 2), .seq = number(5, 256)};
  settings.mesh = {1, 1, world};
  return settings;
}

void run(int argc, char** argv) {
  const comm::MpiSession mpi(argc, argv);
  const auto communicator = comm::make_mpi();
  const plan::Settings settings = settings_of(argc, argv, communicator->size());
  const auto kernels = kernels::make_cpu();
  train::TrainingRank rank(settings, DType::f32, 1, *communicator, {}, engine::on_cpu(*kernels, {.threads = 1}));
  const train::Batch batch = synthetic_batch(settings);
  MatmulRate matmul(*kernels);
  trace::Recorder recorder;
  std::vector<double> rates, plain, traced;
  std::int64_t step = 0, events = 0;
  for (int i = 0; i < 3; ++i) rank.step(++step, 1e-4, batch);
  for (int round = 0; round < rounds; ++round) {
    communicator->barrier();
    rates.push_back(matmul.measure());
    for (int i = 0; i < 2 * steps_per_round; ++i) {
      const bool with_trace = (i + round) % 2 == 0;
      const auto result = rank.step(++step, 1e-4, batch, with_trace ? &recorder : nullptr);
      (with_trace ? traced : plain).push_back(seconds(result.duration_ns));
      if (with_trace) events = static_cast<std::int64_t>(recorder.take().size());
    }
  }
  communicator->barrier();
  if (communicator->rank() != 0) return;
  const double tokens = static_cast<double>(settings.batch.batch * settings.batch.seq);
  const double flops =
      model::model_flops_per_token(settings.model, rank.plan().parameters, settings.batch.seq) * tokens;
  const double step_s = trace::median(plain), rate = flops / step_s, peak = trace::median(rates);
  fmt::print("{} parameters, {} ranks x 1 thread, {} tokens a rank\n", count_text(rank.plan().parameters),
             communicator->size(), tokens);
  fmt::print("step {} (median of {}), {:.1f} GFLOP/s a rank; matrix product {:.1f} GFLOP/s; ratio {:.1f} %\n",
             duration_text(step_s), plain.size(), rate * 1e-9, peak * 1e-9, 100 * rate / peak);
  fmt::print("tokens/s a rank {:.0f}; {} events a step; traced step {} ({:+.2f} %)\n", tokens / step_s, events,
             duration_text(trace::median(traced)), 100 * (trace::median(traced) / step_s - 1));
}

}  // namespace

int main(int argc, char** argv) {
  run(argc, argv);
  return 0;
}
