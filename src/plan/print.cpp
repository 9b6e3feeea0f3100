#include "plan/print.hpp"

#include <fmt/format.h>

namespace foreshard::plan {
namespace {

/// Writes the compact order notation, one segment after the other.
class OrderWriter {
 public:
  explicit OrderWriter(const Plan& plan) : plan_(plan) {}

  std::string run() {
    int micro_batch = 0;
    for (const Segment* segment : plan_.sequence()) {
      word(segment->name == Segment::Name::update ? "|step" : fmt::format("|micro{}", micro_batch++));
      visiting_ = {};
      for (const Op& op : plan_.ops_of(*segment))
        if (op.phase != Phase::update) write(op);
    }
    return std::move(text_);
  }

 private:
  void write(const Op& op) {
    switch (op.kind) {
      case OpKind::all_gather:
        return word("AG:" + name(op.unit));
      case OpKind::reduce_scatter:
        return word("RS:" + name(op.unit));
      case OpKind::all_reduce:
        return word("AR:" + name(op.unit));
      default:
        return visit(op);
    }
  }

  void visit(const Op& op) {
    if (!op.unit.valid() || op.unit == model::root_unit || visiting_ == std::pair{op.unit, op.phase}) return;
    visiting_ = {op.unit, op.phase};
    word((op.phase == Phase::forward ? "F:" : "B:") + name(op.unit));
  }

  const std::string& name(UnitId unit) const { return plan_.unit_names[unit.value]; }
  void word(const std::string& w) { text_ += (text_.empty() ? "" : " ") + w; }

  const Plan& plan_;
  std::string text_;
  std::pair<UnitId, Phase> visiting_;
};

std::string operand_text(const Plan& plan, const Operand& operand) {
  if (!operand.present()) return "-";
  const Buffer& buffer = plan.buffers[operand.buffer.value];
  return fmt::format("b{}[{}]@{}+{}", operand.buffer.value, name_of(buffer.memory),
                     buffer.offset_bytes + operand.offset_bytes, operand.size_bytes);
}

std::string operands_text(const Plan& plan, std::span<const Operand> operands) {
  std::string text;
  for (const Operand& operand : operands) text += " " + operand_text(plan, operand);
  return text;
}

std::string wait_text(const Plan& plan, const Wait& wait) {
  constexpr std::string_view points[] = {"op", "freed", "reduced", "updated"};
  if (wait.on == Wait::On::op) return fmt::format(" {}", wait.index);
  return fmt::format(" {}({})", points[static_cast<int>(wait.on)], plan.unit_names[wait.index]);
}

std::string op_text(const Plan& plan, const Segment& segment, std::uint32_t id) {
  const Op& op = plan.ops[id];
  const Sizes& s = op.sizes;
  std::string text = fmt::format(
      "{:5} {:8} {:8} {:22} {:5} rows={} cols={} inner={} batch={} seq={} heads={}{} reads{} writes{}", id,
      name_of(segment.name), name_of(op.lane), model::name_of(op.kind),
      op.unit.valid() ? plan.unit_names[op.unit.value] : "-", s.rows, s.cols, s.inner, s.batch, s.seq, s.heads,
      op.accumulate ? " accumulates" : "", operands_text(plan, plan.inputs(op)), operands_text(plan, plan.outputs(op)));
  if (op.wait_count > 0) text += " waits for";
  for (const Wait& wait : plan.waits_of(op)) text += wait_text(plan, wait);
  return text + "\n";
}

}  // namespace

std::string order_text(const Plan& plan) { return OrderWriter(plan).run(); }

std::string plan_text(const Plan& plan) {
  std::string text;
  for (const Segment& segment : plan.segments)
    for (std::uint32_t id = segment.first_op; id < segment.first_op + segment.op_count; ++id)
      text += op_text(plan, segment, id);
  return text;
}

}  // namespace foreshard::plan
