#include "local_run.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "engine/cpu_executor.hpp"
#include "train/elements.hpp"

namespace foreshard::parity {
namespace {

/// Rows [rank·R, (rank+1)·R) of a step.
train::Batch rows_of_rank(const train::Batch& all, int rank, int world) {
  const auto part = [&]<class T>(const std::vector<T>& values) {
    const auto size = static_cast<std::ptrdiff_t>(values.size()) / world;
    return std::vector(values.begin() + rank * size, values.begin() + (rank + 1) * size);
  };
  return {part(all.tokens), part(all.targets), part(all.images)};
}

/// Copies one rank's shard of a unit, or of its gradient, to its place in whole parameters.
void scatter(const model::Graph& graph, const plan::FlatParameter& flat, int rank, bool gradients,
             const train::Elements& shard, Tensors& whole) {
  for (const plan::ShardPart& part : plan::parts_of_shard(flat, rank)) {
    if (gradients && !part.piece->trainable) continue;
    auto& values = whole[graph.parameters[part.piece->parameter.value].name];
    values.resize(static_cast<std::size_t>(part.piece->elements));
    for (std::int64_t i = 0; i < part.count; ++i)
      values[static_cast<std::size_t>(part.first + i)] = shard.at(part.at + i);
  }
}

void collect(train::TrainingRank& rank, int index, bool gradients, Tensors& whole) {
  const plan::Plan& plan = rank.plan();
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) {
    auto bytes = rank.copy_of(gradients ? rank.gradient_shard(unit) : rank.parameter_shard(unit));
    if (bytes.empty()) continue;
    const DType type = gradients ? plan.dtype : plan.master;
    const train::Elements shard(bytes.data(), static_cast<std::int64_t>(bytes.size()) / size_bytes(type), type);
    scatter(rank.graph(), plan.units[unit], index, gradients, shard, whole);
  }
}

void set_parameters(train::TrainingRank& rank, int index, const RunSetup& setup) {
  FORESHARD_EXPECT(setup.dtype == DType::f64, "initial values are given in double");
  for (std::uint32_t unit = 0; unit < rank.plan().units.size(); ++unit) {
    rank.change(rank.parameter_shard(unit), [&](std::span<std::byte> bytes) {
      auto* shard = reinterpret_cast<double*>(bytes.data());
      for (const plan::ShardPart& part : plan::parts_of_shard(rank.plan().units[unit], index))
        for (std::int64_t i = 0; i < part.count; ++i)
          shard[part.at + i] = setup.initial(rank.graph().parameters[part.piece->parameter.value], part.first + i);
    });
  }
}

/// Makes all bytes that nothing has been written to NaN, as any number that is read before it is written must be.
void poison(train::TrainingRank& rank) {
  const plan::Plan& plan = rank.plan();
  for (std::uint32_t id = 0; id < plan.buffers.size(); ++id)
    if (const plan::Buffer& buffer = plan.buffers[id]; !buffer.persistent)
      rank.change({id}, [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{0xff}); });
}

class Ranks {
 public:
  explicit Ranks(const RunSetup& setup)
      : setup_(setup), communicators_(comm::make_local(setup.settings.mesh.world_size())) {}

  Outcome run() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back([this, rank] { guarded(rank); });
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(outcome_);
  }

 private:
  int size() const { return static_cast<int>(communicators_.size()); }

  void guarded(int rank) {
    try {
      train_rank(rank);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      communicators_[static_cast<std::size_t>(rank)]->abort(1);
    }
  }

  void train_rank(int index) {
    comm::Communicator& communicator = *communicators_[static_cast<std::size_t>(index)];
    const auto kernels = setup_.reference ? kernels::make_reference() : kernels::make_cpu();
    engine::CpuOptions options;
    options.on_failure = [&](std::exception_ptr) { communicator.abort(1); };
    if (setup_.before_op) options.before_op = [this, index](const plan::Op& op) { setup_.before_op(index, op); };
    train::TrainingRank rank(setup_.settings, setup_.dtype, setup_.seed, communicator, setup_.optimizer,
                             setup_.engine ? setup_.engine() : engine::on_cpu(*kernels, options));
    poison(rank);
    if (setup_.initial) set_parameters(rank, index, setup_);
    communicator.barrier();
    const auto steps = static_cast<std::int64_t>(setup_.learning_rates.size());
    for (std::int64_t step = 1; step <= steps; ++step) {
      const train::Batch batch = rows_of_rank(setup_.batch(step), index, size());
      if (setup_.before_step) setup_.before_step(rank, index, step);
      const auto result = rank.step(step, setup_.learning_rates[static_cast<std::size_t>(step - 1)], batch,
                                    index == 0 ? setup_.recorder : nullptr);
      note(rank, index, step, result);
      if (setup_.after_step) setup_.after_step({rank, communicator, step, batch, result});
      communicator.barrier();
    }
    const std::lock_guard lock(mutex_);
    collect(rank, index, false, outcome_.weights);
    if (index == 0) outcome_.counters = rank.engine().counters();
  }

  void note(train::TrainingRank& rank, int index, std::int64_t step, const train::StepResult& result) {
    const std::lock_guard lock(mutex_);
    if (step == 1) collect(rank, index, true, outcome_.first_gradients);
    if (index != 0) return;
    outcome_.losses.push_back(result.loss);
    outcome_.grad_norms.push_back(result.grad_norm);
  }

  const RunSetup& setup_;
  std::vector<std::unique_ptr<comm::Communicator>> communicators_;
  std::mutex mutex_;
  Outcome outcome_;
  std::exception_ptr error_;
};

}  // namespace

plan::Settings settings_of(const model::Config& model, std::int64_t seq, std::int64_t global_rows,
                           const plan::Mesh& mesh, int micro_batches) {
  plan::Settings settings{
      .model = model, .batch = {.batch = global_rows / mesh.world_size() / micro_batches, .seq = seq}, .mesh = mesh};
  settings.schedule.micro_batches = micro_batches;
  return settings;
}

train::Batch formula_batch(std::int64_t rows, std::int64_t seq, std::int64_t vocab, std::int64_t step,
                           int ignore_every) {
  const auto token = [&](std::int64_t i) { return static_cast<std::int32_t>((3 * i * i + 7 * i + step * 11) % vocab); };
  train::Batch batch;
  for (std::int64_t i = 0; i < rows * seq; ++i) {
    batch.tokens.push_back(token(i));
    batch.targets.push_back(ignore_every > 0 && i % ignore_every == 0 ? -1 : token(i + 1));
  }
  return batch;
}

Outcome run(const RunSetup& setup) {
  const RunSetup on_engine = on_engine_under_test(setup);
  return Ranks(on_engine).run();
}

double distance(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return 1;
  double worst = 0;
  for (const auto& [name, values] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.size() != values.size()) return 1;
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(values[i] - found->second[i]));
    }
    worst = std::max(worst, largest > 0 ? difference / largest : difference);
  }
  return worst;
}

}  // namespace foreshard::parity
