#include "trace/plan_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "trace/table.hpp"

namespace foreshard::trace {
namespace {

using plan::Buffer;
using plan::Op;
using plan::Operand;
using plan::Plan;
using plan::Segment;
using plan::Wait;

struct OpRow {
  Op op;
  std::uint32_t segment = 0;
};

struct PointRow {
  std::uint32_t segment = 0;
  Wait::On point{};
  plan::UnitId unit;
  plan::OpId op;
};

struct UnitRow {
  std::string name;
  plan::FlatParameter flat;
};

struct PieceRow {
  plan::UnitId unit;
  plan::FlatPiece piece;
};

Fields<OpRow> op_fields() {
  Fields<OpRow> f;
  f.add("kind", "1", "what is computed or moved", f.row.op.kind);
  f.add("lane", "1", "ordered queue the op runs on", f.row.op.lane);
  f.add("phase", "1", "phase of the step", f.row.op.phase);
  f.add("group", "1", "ranks that take part", f.row.op.group);
  f.add("accumulate", "1", "adds to its result", f.row.op.accumulate);
  f.add("unit", "1", "unit served, -1 = none", f.row.op.unit);
  f.add("segment", "1", "row of /plan/segments", f.row.segment);
  f.add("rows", "1", "extent: rows or elements", f.row.op.sizes.rows);
  f.add("cols", "1", "extent: columns", f.row.op.sizes.cols);
  f.add("inner", "1", "extent: contracted dimension", f.row.op.sizes.inner);
  f.add("batch", "1", "extent: sequences", f.row.op.sizes.batch);
  f.add("seq", "1", "extent: tokens of a sequence", f.row.op.sizes.seq);
  f.add("heads", "1", "extent: attention heads", f.row.op.sizes.heads);
  f.add("scalar", "1", "the kind's constant", f.row.op.scalar);
  f.add("stream", "1", "random stream", f.row.op.stream);
  f.add("first_operand", "1", "row of /plan/operands", f.row.op.first_operand);
  f.add("input_count", "1", "operands read", f.row.op.input_count);
  f.add("output_count", "1", "operands written, after those read", f.row.op.output_count);
  f.add("first_wait", "1", "row of /plan/waits", f.row.op.first_wait);
  f.add("wait_count", "1", "waits", f.row.op.wait_count);
  f.add("flops", "1", "floating-point operations", f.row.op.cost.flops);
  f.add("read_bytes", "byte", "memory read", f.row.op.cost.read_bytes);
  f.add("written_bytes", "byte", "memory written", f.row.op.cost.written_bytes);
  f.add("wire_bytes", "byte", "received from other ranks", f.row.op.wire_bytes);
  return f;
}

Fields<Operand> operand_fields() {
  Fields<Operand> f;
  f.add("buffer", "1", "row of /plan/buffers, -1 = absent", f.row.buffer);
  f.add("offset", "byte", "offset in the buffer", f.row.offset_bytes);
  f.add("size", "byte", "size", f.row.size_bytes);
  f.add("dtype", "1", "element type", f.row.dtype);
  f.add("written", "1", "written by the op", f.row.written);
  return f;
}

Fields<Wait> wait_fields() {
  Fields<Wait> f;
  f.add("on", "1", "what is waited for", f.row.on);
  f.add("index", "1", "op, or unit of a boundary point", f.row.index);
  return f;
}

Fields<Buffer> buffer_fields() {
  Fields<Buffer> f;
  f.add("size", "byte", "size", f.row.size_bytes);
  f.add("offset", "byte", "offset in the arena of its space, -1 = none", f.row.offset_bytes);
  f.add("memory_class", "1", "what its bytes are for", f.row.memory);
  f.add("space", "1", "memory of the device or of its host", f.row.space);
  f.add("persistent", "1", "lives for the whole run", f.row.persistent);
  f.add("tensor", "1", "tensor held, -1 = none", f.row.tensor);
  f.add("unit", "1", "unit it belongs to, -1 = none", f.row.unit);
  return f;
}

Fields<Segment> segment_fields() {
  Fields<Segment> f;
  f.add("name", "1", "part of the step", f.row.name);
  f.add("first_op", "1", "row of /plan/ops", f.row.first_op);
  f.add("op_count", "1", "ops", f.row.op_count);
  return f;
}

Fields<PointRow> point_fields() {
  Fields<PointRow> f;
  f.add("segment", "1", "row of /plan/segments", f.row.segment);
  f.add("point", "1", "boundary point", f.row.point);
  f.add("unit", "1", "its unit", f.row.unit);
  f.add("op", "1", "its op, -1 = none", f.row.op);
  return f;
}

Fields<UnitRow> unit_fields(std::size_t name_bytes) {
  Fields<UnitRow> f;
  f.add_text("name", "1", "name", name_bytes, f.row.name);
  f.add("elements", "1", "parameters", f.row.flat.elements);
  f.add("padded_elements", "1", "parameters with padding", f.row.flat.padded_elements);
  f.add("shard_elements", "1", "parameters of a shard", f.row.flat.shard_elements);
  f.add("gathered", "1", "type of the whole parameters", f.row.flat.gathered);
  f.add("reduced", "1", "type of the whole gradient", f.row.flat.reduced);
  f.add("shard_degree", "1", "ranks that share it out", f.row.flat.shard_degree);
  f.add("trainable_elements", "1", "trained parameters", f.row.flat.trainable.elements);
  f.add("trainable_padded_elements", "1", "trained parameters with padding", f.row.flat.trainable.padded_elements);
  f.add("parameter_shard", "1", "row of /plan/buffers", f.row.flat.parameter_shard);
  f.add("gradient_shard", "1", "row of /plan/buffers", f.row.flat.gradient_shard);
  f.add("first_moment", "1", "row of /plan/buffers", f.row.flat.first_moment);
  f.add("second_moment", "1", "row of /plan/buffers", f.row.flat.second_moment);
  return f;
}

Fields<PieceRow> piece_fields() {
  Fields<PieceRow> f;
  f.add("unit", "1", "row of /plan/units", f.row.unit);
  f.add("parameter", "1", "parameter of the model", f.row.piece.parameter);
  f.add("offset", "1", "first element in the flat parameter", f.row.piece.offset);
  f.add("elements", "1", "elements", f.row.piece.elements);
  return f;
}

std::vector<OpRow> op_rows(const Plan& plan) {
  std::vector<OpRow> rows;
  for (const Op& op : plan.ops) rows.push_back({op});
  for (std::uint32_t s = 0; s < plan.segments.size(); ++s)
    for (std::uint32_t i = 0; i < plan.segments[s].op_count; ++i) rows[plan.segments[s].first_op + i].segment = s;
  return rows;
}

std::vector<PointRow> point_rows(const Plan& plan) {
  std::vector<PointRow> rows;
  for (std::uint32_t s = 0; s < plan.segments.size(); ++s)
    for (std::uint8_t point = 0; point < plan::boundary_points; ++point) {
      const auto& ops = plan.segments[s].points[point];
      for (std::uint32_t unit = 0; unit < ops.size(); ++unit)
        rows.push_back({s, static_cast<Wait::On>(point + 1), {unit}, ops[unit]});
    }
  return rows;
}

std::vector<UnitRow> unit_rows(const Plan& plan) {
  std::vector<UnitRow> rows(std::max(plan.units.size(), plan.unit_names.size()));
  for (std::size_t i = 0; i < plan.unit_names.size(); ++i) rows[i].name = plan.unit_names[i];
  for (std::size_t i = 0; i < plan.units.size(); ++i) rows[i].flat = plan.units[i];
  return rows;
}

std::vector<PieceRow> piece_rows(const Plan& plan) {
  std::vector<PieceRow> rows;
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit)
    for (const auto& piece : plan.units[unit].pieces) rows.push_back({{unit}, piece});
  return rows;
}

std::size_t longest_name(const Plan& plan) {
  std::size_t longest = 1;
  for (const auto& name : plan.unit_names) longest = std::max(longest, name.size());
  return longest;
}

/// The plan's single numbers and how each is called in the file.
template <class PlanRef, class Visit>
void visit_numbers(PlanRef& plan, Visit visit) {
  visit("replicas", plan.mesh.replicas);
  visit("outer", plan.mesh.outer);
  visit("inner", plan.mesh.inner);
  visit("micro_batches", plan.micro_batches);
  visit("micro_batch_tokens", plan.micro_batch_tokens);
  visit("parameters", plan.parameters);
  visit("arena_bytes", plan.arena_bytes);
  visit("host_arena_bytes", plan.host_arena_bytes);
  visit("norm_buffer", plan.norm.value);
  visit("loss_buffer", plan.loss.value);
}

void expect(bool condition, const char* what) {
  if (!condition) throw LibraryError(fmt::format("/plan: {} leads outside", what));
}

void expect_ranges(const Plan& plan) {
  for (const Op& op : plan.ops) {
    expect(std::uint64_t{op.first_operand} + op.input_count + op.output_count <= plan.operands.size(),
           "an operand of an op");
    expect(std::uint64_t{op.first_wait} + op.wait_count <= plan.waits.size(), "a wait of an op");
  }
  for (const Operand& operand : plan.operands)
    expect(!operand.present() || operand.buffer.value < plan.buffers.size(), "a buffer of an operand");
  for (const Segment& segment : plan.segments)
    expect(std::uint64_t{segment.first_op} + segment.op_count <= plan.ops.size(), "an op of a segment");
}

DType read_dtype(hid_t group, const char* name) {
  const auto& dtypes = names_of<DType>();
  const auto dtype = std::find(dtypes.begin(), dtypes.end(), hdf5::read_text_attribute(group, name));
  expect(dtype != dtypes.end(), name);
  return static_cast<DType>(dtype - dtypes.begin());
}

template <class Row>
std::vector<Row> read_rows(hid_t group, const char* name, const Fields<Row>& fields) {
  return read_table<Row>(group, name, fields);
}

void read_points(hid_t group, Plan& plan) {
  for (const PointRow& row : read_rows(group, "points", point_fields())) {
    expect(row.segment < plan.segments.size() && row.point != Wait::On::op, "a boundary point");
    plan.segments[row.segment].points[static_cast<std::size_t>(row.point) - 1].push_back(row.op);
  }
}

void read_units(hid_t group, Plan& plan) {
  for (UnitRow& row : read_rows(group, "units", unit_fields(256))) {
    plan.unit_names.push_back(std::move(row.name));
    plan.units.push_back(std::move(row.flat));
  }
  for (const PieceRow& row : read_rows(group, "pieces", piece_fields())) {
    expect(row.unit.value < plan.units.size(), "a piece of a unit");
    plan.units[row.unit.value].pieces.push_back(row.piece);
  }
}

}  // namespace

void write_plan(hid_t file, const Plan& plan) {
  const hdf5::Handle group = hdf5::create_group(file, "plan");
  visit_numbers(plan, [&](const char* name, auto value) {
    hdf5::write_attribute(group.id(), name, static_cast<std::int64_t>(value));
  });
  hdf5::write_attribute(group.id(), "dtype", text_of(plan.dtype));
  hdf5::write_attribute(group.id(), "master", text_of(plan.master));
  write_table<OpRow>(group.id(), "ops", op_fields(), op_rows(plan));
  write_table<Operand>(group.id(), "operands", operand_fields(), plan.operands);
  write_table<Wait>(group.id(), "waits", wait_fields(), plan.waits);
  write_table<Buffer>(group.id(), "buffers", buffer_fields(), plan.buffers);
  write_table<Segment>(group.id(), "segments", segment_fields(), plan.segments);
  write_table<PointRow>(group.id(), "points", point_fields(), point_rows(plan));
  write_table<UnitRow>(group.id(), "units", unit_fields(longest_name(plan)), unit_rows(plan));
  write_table<PieceRow>(group.id(), "pieces", piece_fields(), piece_rows(plan));
}

Plan read_plan(hid_t file) {
  const hdf5::Handle group = hdf5::open_group(file, "plan");
  Plan plan;
  visit_numbers(plan, [&](const char* name, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(hdf5::read_integer_attribute(group.id(), name));
  });
  plan.dtype = plan.master = read_dtype(group.id(), "dtype");
  if (hdf5::has_attribute(group.id(), "master")) plan.master = read_dtype(group.id(), "master");
  for (const OpRow& row : read_rows(group.id(), "ops", op_fields())) plan.ops.push_back(row.op);
  plan.operands = read_rows(group.id(), "operands", operand_fields());
  plan.waits = read_rows(group.id(), "waits", wait_fields());
  plan.buffers = read_rows(group.id(), "buffers", buffer_fields());
  plan.segments = read_rows(group.id(), "segments", segment_fields());
  read_points(group.id(), plan);
  read_units(group.id(), plan);
  expect_ranges(plan);
  return plan;
}

}  // namespace foreshard::trace
