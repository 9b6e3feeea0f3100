#include "trace/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trace/names.hpp"

namespace foreshard::trace {
namespace {

using plan::Op;
using plan::Plan;
using Found = std::optional<std::string>;

struct Sides {
  const Plan &a, &b;
  const std::string &name_a, &name_b;

  std::string both(const std::string& a_says, const std::string& b_says) const {
    return fmt::format("{} has {}, {} has {}", name_a, a_says, name_b, b_says);
  }
};

std::string shape_text(const Plan& plan) {
  return fmt::format("replicas x outer x inner = {} x {} x {}, {} micro-batches of {} tokens, {}", plan.mesh.replicas,
                     plan.mesh.outer, plan.mesh.inner, plan.micro_batches, plan.micro_batch_tokens,
                     text_of(plan.dtype));
}

std::string segments_text(const Plan& plan) {
  std::string text;
  for (const plan::Segment& segment : plan.segments)
    text += fmt::format("{}{}", text.empty() ? "" : " ", text_of(segment.name));
  return text;
}

/// What an op is, as far as a reader of the order cares.
std::string op_title(const Plan& plan, const Op& op) {
  return fmt::format("{} {} on lane {}", text_of(op.kind), unit_name(plan, op.unit), text_of(op.lane));
}

std::string sizes_text(const Op& op) {
  const plan::Sizes& s = op.sizes;
  return fmt::format("rows {} cols {} inner {} batch {} seq {} heads {}{}", s.rows, s.cols, s.inner, s.batch, s.seq,
                     s.heads, op.accumulate ? ", accumulating" : "");
}

std::string waits_text(const Plan& plan, const Op& op) {
  std::string text;
  for (const plan::Wait& wait : plan.waits_of(op)) text += fmt::format(" {} {},", text_of(wait.on), wait.index);
  return text.empty() ? "no waits" : "waits for" + text.substr(0, text.size() - 1);
}

std::string operands_text(const Plan& plan, const Op& op) {
  std::string text = "operands";
  const auto add = [&](const plan::Operand& o) {
    if (o.present())
      text += fmt::format(" {}{}+{}[{}]{}", o.written ? ">" : "", o.buffer.value, o.offset_bytes, o.size_bytes,
                          text_of(o.dtype));
    else
      text += " -";
  };
  for (const auto& operand : plan.inputs(op)) add(operand);
  for (const auto& operand : plan.outputs(op)) add(operand);
  return text;
}

std::string buffer_text(const Plan& plan, std::size_t i) {
  const plan::Buffer& buffer = plan.buffers[i];
  return fmt::format("{} bytes at offset {} of the {}, {}{}, unit {}", buffer.size_bytes, buffer.offset_bytes,
                     text_of(buffer.space), text_of(buffer.memory), buffer.persistent ? " (persistent)" : "",
                     unit_name(plan, buffer.unit));
}

Found differing_op(const Sides& sides, const plan::Segment& in_a, const plan::Segment& in_b, std::uint32_t position) {
  const Op& a = sides.a.ops[in_a.first_op + position];
  const Op& b = sides.b.ops[in_b.first_op + position];
  const std::string where = fmt::format("order: segment {}, position {}", text_of(in_a.name), position);
  const std::string title = op_title(sides.a, a);
  if (title != op_title(sides.b, b)) return where + ": " + sides.both(title, op_title(sides.b, b));
  for (const auto text : {+[](const Plan&, const Op& op) { return sizes_text(op); }, &waits_text, &operands_text})
    if (text(sides.a, a) != text(sides.b, b))
      return fmt::format("{} ({}): {}", where, title, sides.both(text(sides.a, a), text(sides.b, b)));
  return {};
}

/// The op at a position, or that the segment has ended.
std::string title_or_end(const Plan& plan, const plan::Segment& segment, std::uint32_t position) {
  return position < segment.op_count ? op_title(plan, plan.ops[segment.first_op + position]) : "the segment's end";
}

Found differing_order(const Sides& sides) {
  if (segments_text(sides.a) != segments_text(sides.b))
    return "segments: " + sides.both(segments_text(sides.a), segments_text(sides.b));
  for (std::size_t s = 0; s < sides.a.segments.size(); ++s) {
    const plan::Segment &a = sides.a.segments[s], &b = sides.b.segments[s];
    const std::uint32_t common = std::min(a.op_count, b.op_count);
    for (std::uint32_t position = 0; position < common; ++position)
      if (const Found found = differing_op(sides, a, b, position)) return found;
    if (a.op_count != b.op_count)
      return fmt::format("order: segment {}, position {}: {}", text_of(a.name), common,
                         sides.both(title_or_end(sides.a, a, common), title_or_end(sides.b, b, common)));
  }
  return {};
}

Found differing_memory(const Sides& sides) {
  const std::size_t common = std::min(sides.a.buffers.size(), sides.b.buffers.size());
  for (std::size_t i = 0; i < common; ++i)
    if (buffer_text(sides.a, i) != buffer_text(sides.b, i))
      return fmt::format("memory: buffer {}: {}", i, sides.both(buffer_text(sides.a, i), buffer_text(sides.b, i)));
  if (sides.a.buffers.size() != sides.b.buffers.size())
    return "memory: " + sides.both(fmt::format("{} buffers", sides.a.buffers.size()),
                                   fmt::format("{} buffers", sides.b.buffers.size()));
  if (sides.a.arena_bytes != sides.b.arena_bytes)
    return "memory: arena: " +
           sides.both(fmt::format("{} bytes", sides.a.arena_bytes), fmt::format("{} bytes", sides.b.arena_bytes));
  return {};
}

}  // namespace

Found first_divergence(const Plan& a, const Plan& b, const std::string& name_a, const std::string& name_b) {
  const Sides sides{a, b, name_a, name_b};
  if (shape_text(a) != shape_text(b)) return "shape: " + sides.both(shape_text(a), shape_text(b));
  if (const Found found = differing_order(sides)) return found;
  return differing_memory(sides);
}

}  // namespace foreshard::trace
