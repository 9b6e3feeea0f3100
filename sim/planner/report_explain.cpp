#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "plan/query.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/planner/explain.hpp"

namespace foreshard::sim::planner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 4> works{"forward", "backward", "recomputation", "update"};
constexpr std::array<std::string_view, 3> kernels{"products", "attention", "others"};

std::string line(std::string_view what, double seconds, double step_s, const std::string& note = "") {
  if (seconds <= 0) return "";
  return fmt::format("  {:<30}{:>10}{:>7.1f} %{}{}\n", what, duration_text(seconds), 100 * seconds / step_s,
                     note.empty() ? "" : "   ", note);
}

std::string by_kernel(const TimeParts& parts, std::size_t work) {
  std::string text;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (parts.work_s[work][i] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", kernels[i], duration_text(parts.work_s[work][i]));
  return text;
}

std::string times(const Explanation& e) {
  const TimeParts& parts = e.parts;
  std::string text = fmt::format("where the step's {} go\n", duration_text(e.step_s));
  for (std::size_t work = 0; work < works.size(); ++work)
    text += line(works[work], parts.of(static_cast<Work>(work)), e.step_s, by_kernel(parts, work));
  text +=
      line("the slowest rank's share", parts.slowest_rank_s, e.step_s, "what it computes longer than the mean rank");
  text += line("beside collectives", parts.beside_s, e.step_s, "kernels slowed by them: SMs and memory they take");
  for (int lane = 0; lane < plan::lane_count; ++lane)
    text += line(fmt::format("waiting for {}", plan::name_of(static_cast<plan::Lane>(lane))),
                 parts.exposed_s[static_cast<std::size_t>(lane)], e.step_s);
  return text + line("other", parts.other_s, e.step_s) + "\n";
}

double bytes_of(const OpGroup& group) { return static_cast<double>(group.op.sizes.rows * size_bytes(group.dtype)); }

/// As nccl-tests counts it.
double bus_bytes_per_s(const OpGroup& group) {
  const double part = static_cast<double>(group.members - 1) / group.members;
  return cost::passes(group.op.kind) * part * bytes_of(group) / group.seconds;
}

std::string collective_lines(const std::vector<OpGroup>& groups) {
  std::string text = groups.empty() ? "" : "collectives, each alone: buffer, bandwidth on the bus\n";
  for (const OpGroup& group : groups)
    text += fmt::format("  {:>5} x {:<15}{:>10} over {:<6}{:>10}{:>12}  {} SMs, {} in all\n", group.count,
                        model::name_of(group.op.kind), bytes_text(std::llround(bytes_of(group))), group.members,
                        duration_text(group.seconds), rate_text(bus_bytes_per_s(group)), group.sms,
                        duration_text(group.count * group.seconds));
  return text.empty() ? text : text + "\n";
}

std::string sizes_text(const plan::Op& op) {
  const Sizes& s = op.sizes;
  const bool causal = op.kind == plan::OpKind::attention || op.kind == plan::OpKind::attention_backward;
  if (causal && s.rows > 0)
    return fmt::format("{} x {} heads of {}, {} tokens, window {}", s.batch, s.heads, s.inner, s.seq, s.rows);
  if (s.heads > 0) return fmt::format("{} x {} heads of {}, {} tokens", s.batch, s.heads, s.inner, s.seq);
  if (s.inner > 0 && op.cost.flops > 0) return fmt::format("{} x {} x {}", s.rows, s.cols, s.inner);
  return s.cols > 0 ? fmt::format("{} x {}", s.rows, s.cols) : fmt::format("{}", s.rows);
}

std::string kernel_lines(const std::vector<OpGroup>& groups) {
  std::string text = "kernels that take longest, each alone\n";
  for (const OpGroup& group : groups)
    text += fmt::format("  {:>5} x {:<22}{:<32}{:>10}{:>8.0f} TFLOP/s  {} in all\n", group.count,
                        model::name_of(group.op.kind), sizes_text(group.op), duration_text(group.seconds),
                        group.op.cost.flops / group.seconds / 1e12, duration_text(group.count * group.seconds));
  return text + "\n";
}

std::string state_line(const plan::Settings& settings, const plan::Plan& plan) {
  const int moments = model::moment_count(settings.schedule.update), shards = plan.mesh.shard_degree();
  const std::int64_t trained = plan::trained_parameters(plan), frozen = plan.parameters - trained;
  const double bytes = 4.0 * (2 + moments) * static_cast<double>(trained) + 4.0 * static_cast<double>(frozen);
  return fmt::format(
      "state of a rank: 4 B x ((parameter + gradient + {} moments) x {} parameters{}) / {} = {}{}\n", moments,
      count_text(trained), frozen > 0 ? fmt::format(" + {} frozen ones", count_text(frozen)) : "", shards,
      bytes_text(std::llround(bytes / shards)),
      plan.host_arena_bytes > 0 ? fmt::format(", {} of it in host memory", bytes_text(plan.host_arena_bytes)) : "");
}

std::string signed_text(std::string text, bool more) { return (more ? "+" : "-") + std::move(text); }

std::string effect_lines(const Explanation& e) {
  std::string text = "       memory                      step              one decision changed\n";
  for (const Effect& effect : e.effects) {
    const std::int64_t bytes = effect.memory_bytes - e.memory_bytes;
    const double seconds = effect.step_s - e.step_s;
    text += fmt::format("  {:>11} ({:>10}){:>10} ({:>6.1f} %)  {}\n", bytes_text(effect.memory_bytes),
                        signed_text(bytes_text(std::abs(bytes)), bytes >= 0), duration_text(effect.step_s),
                        100 * seconds / e.step_s, effect.change);
  }
  return text;
}

Json json_of(const OpGroup& group) {
  const Sizes& s = group.op.sizes;
  return {{"kind", model::name_of(group.op.kind)},
          {"count", group.count},
          {"seconds", group.seconds},
          {"flops", group.op.cost.flops},
          {"members", group.members},
          {"sizes", {{"rows", s.rows}, {"cols", s.cols}, {"inner", s.inner}, {"batch", s.batch}, {"seq", s.seq}}}};
}

}  // namespace

std::string explanation_text(const Explanation& e, const plan::Settings& settings, const plan::Plan& plan) {
  return times(e) + collective_lines(e.collectives) + kernel_lines(e.kernels) + state_line(settings, plan) + "\n" +
         effect_lines(e);
}

Json explanation_json(const Explanation& e) {
  Json work, exposed, collectives = Json::array(), longest = Json::array(), effects = Json::array();
  for (std::size_t w = 0; w < works.size(); ++w)
    for (std::size_t k = 0; k < kernels.size(); ++k)
      work[std::string(works[w])][std::string(kernels[k])] = e.parts.work_s[w][k];
  for (int lane = 0; lane < plan::lane_count; ++lane)
    exposed[std::string(plan::name_of(static_cast<plan::Lane>(lane)))] =
        e.parts.exposed_s[static_cast<std::size_t>(lane)];
  for (const OpGroup& group : e.collectives) collectives.push_back(json_of(group));
  for (const OpGroup& group : e.kernels) longest.push_back(json_of(group));
  for (const Effect& effect : e.effects)
    effects.push_back(
        {{"change", effect.change}, {"step_time_s", effect.step_s}, {"memory_bytes", effect.memory_bytes}});
  return {{"work_s", work},
          {"slowest_rank_s", e.parts.slowest_rank_s},
          {"beside_s", e.parts.beside_s},
          {"waiting_s", exposed},
          {"other_s", e.parts.other_s},
          {"collectives", collectives},
          {"kernels", longest},
          {"effects", effects}};
}

}  // namespace foreshard::sim::planner
