#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "sim/planner/report_search.hpp"

namespace foreshard::sim::planner {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(Fate fate) {
  switch (fate) {
    case Fate::simulated:
      return "simulated";
    case Fate::too_large:
      return "too_large";
    case Fate::cannot_fit:
      return "cannot_fit";
    case Fate::cannot_be_best:
      return "cannot_be_best";
    case Fate::not_simulated:
      return "not_simulated";
  }
  return "";
}

Json keys_json(const Point& point) {
  Json json;
  for (const auto& [key, value] : keys_of(point)) json[key] = value;
  return json;
}

Json plan_json(const Candidate& candidate, const SearchSubject& subject) {
  const Utilization used = utilization_of(subject, candidate.point, candidate.found.step_s);
  const auto tokens = static_cast<double>(subject.base.step_tokens());
  Json json{{"runtime", name_of(candidate.point.runtime)},
            {"step_time_s", candidate.found.step_s},
            {"memory_bytes", candidate.found.memory_bytes},
            {"host_memory_bytes", candidate.found.host_memory_bytes},
            {"allocation_retries", candidate.found.retries},
            {"gpus", candidate.point.gpus},
            {"tokens_per_s", tokens / candidate.found.step_s},
            {"tflops_per_device", used.flops_per_s / 1e12},
            {"part_of_peak", used.part},
            {"plausible", done_utilization_of(subject, candidate.point, candidate.found.step_s).is_plausible()},
            {"tight", is_tight(candidate, subject)},
            {"error_bars", {{"step_time_s", validation::json_of(step_time_error_bar(subject, candidate.point))}}},
            {"command", command_of(candidate.point, subject.config)},
            {"keys", keys_json(candidate.point)}};
  if (candidate.point.runtime != Runtime::own)
    json["error_bars"]["memory_bytes"] = validation::json_of(validation::memory_error_bar(false));
  if (subject.run.tokens > 0)
    json["run"] = json_of(run_cost(subject.run, candidate.found.step_s, tokens, candidate.point.gpus));
  return json;
}

}  // namespace

std::string search_json(const SearchResult& result, const SearchSubject& subject) {
  Json fates;
  for (const Fate fate :
       {Fate::simulated, Fate::too_large, Fate::cannot_fit, Fate::cannot_be_best, Fate::not_simulated})
    fates[std::string(name_of(fate))] = result.count(fate);
  Json pareto = Json::array();
  for (const std::size_t index : result.pareto) pareto.push_back(plan_json(result.candidates[index], subject));
  Json by_runtime;
  for (const Runtime runtime : subject.runtimes) {
    const Candidate* found = result.best_of(runtime);
    by_runtime[std::string(planner::name_of(runtime))] = found ? plan_json(*found, subject) : Json();
  }
  Json alike = Json::array();
  for (const Runtime runtime : not_told_apart(result, subject)) alike.push_back(planner::name_of(runtime));
  const Json json{{"schema", 1},
                  {"runtime", runtimes_text(subject)},
                  {"cluster", subject.cluster.name},
                  {"device_memory_bytes", std::llround(subject.cluster.device.memory_bytes.value)},
                  {"global_batch", subject.base.global_batch()},
                  {"tokens_per_step", subject.base.step_tokens()},
                  {"combinations", subject.space.combinations},
                  {"plans", result.candidates.size()},
                  {"fates", fates},
                  {"complete_within", result.complete_within},
                  {"left_out", subject.space.left_out},
                  {"best", result.best() ? plan_json(*result.best(), subject) : Json()},
                  {"best_by_runtime", by_runtime},
                  {"not_told_apart", alike},
                  {"pareto", pareto}};
  return json_text(json) + "\n";
}

std::string search_csv(const SearchResult& result, const SearchSubject& subject) {
  const auto device_bytes = std::llround(subject.cluster.device.memory_bytes.value);
  std::string text = "plan,fate,reason,least_step_s,least_memory_bytes,step_s,memory_bytes,keys\n";
  for (std::size_t i = 0; i < result.candidates.size(); ++i) {
    const Candidate& c = result.candidates[i];
    text += fmt::format("{},{},\"{}\",{:.9g},{},", i, name_of(c.fate), reason_of(result, c, device_bytes),
                        c.bound.seconds, c.bound.memory_bytes);
    text += c.is_simulated() ? fmt::format("{:.9g},{},", c.found.step_s, c.found.memory_bytes) : ",,";
    text += fmt::format("\"{}\"\n", command_of(c.point, subject.config));
  }
  return text;
}

}  // namespace foreshard::sim::planner
