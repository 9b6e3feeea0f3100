#include "train/engine_trials.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "exec/run_plan.hpp"
#include "plan/query.hpp"

namespace foreshard::train {
namespace {

using plan::OpKind;

constexpr std::int64_t line_bytes = 256;
std::int64_t lines(std::int64_t size_bytes) { return (size_bytes + line_bytes - 1) / line_bytes * line_bytes; }

/// Which op of a plan is such a product.
plan::Op op_of(const kernels::Matmul& o) {
  plan::Op op{.kind = o.transpose_a   ? OpKind::linear_weight_grad
                      : o.transpose_b ? OpKind::linear
                                      : OpKind::linear_input_grad,
              .accumulate = o.accumulate};
  op.sizes = o.transpose_a   ? plan::Sizes{.rows = o.k, .cols = o.m, .inner = o.n}
             : o.transpose_b ? plan::Sizes{.rows = o.m, .cols = o.n, .inner = o.k}
                             : plan::Sizes{.rows = o.m, .cols = o.k, .inner = o.n};
  return op;
}

std::span<std::byte> bytes_of(const void* data, std::int64_t size_bytes) {
  return {static_cast<std::byte*>(const_cast<void*>(data)), static_cast<std::size_t>(size_bytes)};
}

}  // namespace

EngineTrials::EngineTrials(engine::Engine& engine, const plan::Plan& plan) : engine_(engine), plan_(plan) {
  const plan::ArenaRange range = plan::longest_transient_range(plan);
  first_byte_ = lines(range.offset_bytes);
  room_bytes_ = std::max<std::int64_t>(0, range.offset_bytes + range.size_bytes - first_byte_ - 4 * line_bytes);
}

EngineTrials::Operand EngineTrials::whole(const Elements& elements) {
  return {elements.bytes(), 0, static_cast<std::int64_t>(elements.bytes().size()), elements.dtype()};
}

/// Operands on the device begin at full lines, whatever lies before them.
void EngineTrials::run(plan::Op op, std::span<const Operand> inputs, const Operand& output) {
  plan::Plan& trial = trials_.emplace_back();
  trial.mesh = plan_.mesh;
  trial.dtype = plan_.dtype;
  std::int64_t at = first_byte_;
  const auto add = [&](const Operand& operand, bool written) {
    const plan::BufferId id{static_cast<std::uint32_t>(trial.buffers.size())};
    const std::int64_t begin = lines(operand.before), skipped = begin - operand.before;
    trial.operands.push_back({id, begin, operand.size_bytes, operand.dtype, written});
    trial.buffers.push_back(
        {.size_bytes = skipped + static_cast<std::int64_t>(operand.bytes.size()), .offset_bytes = at});
    at += lines(trial.buffers.back().size_bytes);
    engine_.change(trial.buffers.back(),
                   [&](std::span<std::byte> bytes) { std::ranges::copy(operand.bytes, bytes.begin() + skipped); });
  };
  for (const Operand& input : inputs) add(input, false);
  add(output, true);
  op.input_count = static_cast<std::uint32_t>(inputs.size());
  op.output_count = 1;
  trial.ops.push_back(op);
  trial.segments.push_back({.name = plan::Segment::Name::evaluate, .first_op = 0, .op_count = 1});
  const exec::StepContext context{.step = 0};
  trace::Recorder op_by_op;
  engine_.begin_step(trial, context, &op_by_op);
  exec::run_plan(trial, engine_);
  engine_.read(trial.buffers.back(), [&](std::span<const std::byte> bytes) {
    const auto from = bytes.subspan(static_cast<std::size_t>(lines(output.before) - output.before));
    std::ranges::copy(from.first(output.bytes.size()), output.bytes.begin());
  });
}

Exchange EngineTrials::exchange() {
  return [this](const Collective& c, std::int64_t count, const Elements& input, const Elements& output) {
    const std::int64_t rows = c.gathers() || c.scatters() ? count * plan_.mesh.members(c.group) : count;
    plan::Op op{.kind = c.kind, .lane = c.lane, .group = c.group, .accumulate = c.accumulate};
    op.sizes.rows = rows;
    const std::array inputs{whole(input)};
    run(op, inputs, whole(output));
  };
}

Product EngineTrials::product() {
  return [this](const kernels::Matmul& o, kernels::Const a, kernels::Const b, kernels::Mut c) {
    const auto matrix = [](const void* data, std::int64_t height, std::int64_t width, DType dtype) {
      const std::int64_t size = height * width * size_bytes(dtype), around = rows_around * width * size_bytes(dtype);
      return Operand{bytes_of(static_cast<const std::byte*>(data) - around, size + 2 * around), around, size, dtype};
    };
    const std::array inputs{matrix(a.data, o.transpose_a ? o.k : o.m, o.transpose_a ? o.m : o.k, a.dtype),
                            matrix(b.data, o.transpose_b ? o.n : o.k, o.transpose_b ? o.k : o.n, b.dtype)};
    run(op_of(o), inputs, matrix(c.data, o.m, o.n, c.dtype));
  };
}

}  // namespace foreshard::train
