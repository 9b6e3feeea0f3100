#include "sim/planner/report_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "model/model.hpp"
#include "plan/build.hpp"
#include "sim/gpu_rates.hpp"
#include "sim/hardware_sources.hpp"
#include "sim/masked_flops.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim::planner {
namespace {

double peak_flops(const Cluster& cluster, const Point& point) {
  return size_bytes(point.parameters) == 2 ? rates_of(cluster.device).half_flops : cluster.device.fp32_flops.value;
}

/// Steps are compared, so in more digits than other durations.
std::string step_text(double seconds) {
  return seconds >= 1 && seconds < 59.995 ? fmt::format("{:.2f} s", seconds) : duration_text(seconds);
}

std::string count(std::size_t number) { return count_text(static_cast<std::int64_t>(number)); }

double step_tokens(const plan::Settings& base) { return static_cast<double>(base.step_tokens()); }

std::string header(const SearchResult& result, const SearchSubject& subject) {
  const Space& space = subject.space;
  return fmt::format(
      "{} combinations, {} different plans of {}, each of {} sequences of {} tokens a step, on {} ({} each)\n",
      count_text(space.combinations), count(result.candidates.size()), runtimes_text(subject),
      count_text(subject.base.global_batch()), count_text(subject.base.batch.seq), subject.cluster.name,
      bytes_text(std::llround(subject.cluster.device.memory_bytes.value)));
}

std::string not_simulated(const SearchResult& result) {
  std::string text = "not simulated, since search.simulations allows no more: ";
  if (result.best() && result.least_not_simulated_s > 0 && result.least_not_simulated_s < result.best()->found.step_s)
    text += fmt::format("none is faster than the best by more than {:.1f} %, ",
                        100 * (1 - result.least_not_simulated_s / result.best()->found.step_s));
  else
    text += "none is faster than the best, ";
  return text + (result.complete_within < 1 ? fmt::format("none better than all simulated ones by more than {:.3g} %",
                                                          100 * result.complete_within)
                                            : "but any may need less memory");
}

std::string fates(const SearchResult& result, const SearchSubject& subject) {
  const auto line = [&](Fate fate, std::string_view what) {
    return result.count(fate) > 0 ? fmt::format("  {:>10}  {}\n", count(result.count(fate)), what) : "";
  };
  std::string text =
      line(Fate::cannot_fit, "cannot fit, by a bound on their memory") +
      line(Fate::cannot_be_best, fmt::format("cannot be better than a simulated plan by more than {:.3g} %, by bounds "
                                             "on time and memory",
                                             100 * subject.tolerance)) +
      line(Fate::not_simulated, not_simulated(result)) + line(Fate::too_large, "simulated, do not fit") +
      line(Fate::simulated, "simulated, fit");
  for (const std::string& value : subject.space.left_out) text += fmt::format("  left out    {}\n", value);
  const double bounds = static_cast<double>(result.candidates.size()) / std::max(1e-9, result.bound_s);
  const std::size_t simulated = result.count(Fate::simulated) + result.count(Fate::too_large);
  return text + fmt::format("  {:.1f} s on {} threads: {:.0f} bounds and {:.0f} simulations a second\n\n",
                            result.bound_s + result.simulate_s, subject.threads, bounds,
                            static_cast<double>(simulated) / std::max(1e-9, result.simulate_s));
}

std::string retries_text(const Candidate& candidate) {
  if (candidate.found.retries == 0) return "";
  return fmt::format("; fits only with {} allocation retries a step", candidate.found.retries);
}

/// Of our own runtime the arena is known to the byte.
std::string memory_trust(const Candidate& candidate, const SearchSubject& subject) {
  if (candidate.point.runtime == Runtime::own)
    return "to the byte in the arena, context and communicators as published";
  std::string text = text_of(validation::memory_error_bar(false));
  if (is_tight(candidate, subject)) text += "; so it may not fit";
  return text + retries_text(candidate);
}

std::string best(const Candidate& candidate, const SearchSubject& subject) {
  const Utilization used = utilization_of(subject, candidate.point, candidate.found.step_s);
  const auto memory = std::llround(subject.cluster.device.memory_bytes.value);
  std::string text = fmt::format(
      "best: step {}, {} tokens/s, {:.1f} TFLOP/s a GPU ({:.1f} % of peak, palm), {} of {} a GPU{}\n  {}\n",
      step_text(candidate.found.step_s), count_text(std::llround(step_tokens(subject.base) / candidate.found.step_s)),
      used.flops_per_s / 1e12, 100 * used.part, bytes_text(candidate.found.memory_bytes), bytes_text(memory),
      candidate.found.host_memory_bytes > 0
          ? fmt::format(", {} of host memory a rank", bytes_text(candidate.found.host_memory_bytes))
          : "",
      command_of(candidate.point, subject.config));
  text += "  step " + text_of(step_time_error_bar(subject, candidate.point)) + "\n";
  text += "  memory " + memory_trust(candidate, subject) + "\n";
  if (const auto note = masked_note(subject.step_flops.counted, subject.step_flops.masked, used.part); !note.empty())
    text += "  " + note;
  if (const auto done = done_utilization_of(subject, candidate.point, candidate.found.step_s); !done.is_plausible())
    text += "  " + warning_text(done);
  if (subject.run.tokens > 0)
    text +=
        "  " + text_of(run_cost(subject.run, candidate.found.step_s, step_tokens(subject.base), candidate.point.gpus));
  return text + "\n";
}

/// Where some memory is not exact.
std::string tight_column(const SearchSubject& subject, std::string_view mark) {
  const bool exact = std::ranges::all_of(subject.runtimes, [](Runtime runtime) { return runtime == Runtime::own; });
  return exact ? "" : fmt::format("{:>7}", mark);
}

/// Over what `row` makes.
std::string heads(const SearchSubject& subject, std::string_view keys) {
  return fmt::format("  {:>10}{:>11}{:>7}{:>7}{}{}  {}\n", "step", "memory", "GPUs", "MFU %",
                     subject.run.tokens > 0 ? fmt::format("{:>8}", "days") : "", tight_column(subject, ""), keys);
}

std::string tight_note() {
  return fmt::format("  tight: with its error bar of {:g} % the memory exceeds the device; may not fit\n",
                     validation::memory_error_bar(false).pct);
}

std::string row(const Candidate& candidate, const SearchSubject& subject, const std::vector<std::string>& common) {
  const Utilization used = utilization_of(subject, candidate.point, candidate.found.step_s);
  std::string text = fmt::format("  {:>10}{:>11}{:>7}{:>7.1f}", step_text(candidate.found.step_s),
                                 bytes_text(candidate.found.memory_bytes), candidate.point.gpus, 100 * used.part);
  if (subject.run.tokens > 0)
    text += fmt::format(
        "{:>8.2f}",
        run_cost(subject.run, candidate.found.step_s, step_tokens(subject.base), candidate.point.gpus).days());
  std::string own;
  for (const std::string& flag : flags_of(candidate.point, subject.config))
    if (std::ranges::find(common, flag) == common.end()) own += " " + flag;
  text += tight_column(subject, is_tight(candidate, subject) ? "tight" : "");
  return text + " " + (own.empty() ? " nothing else" : own) + retries_text(candidate) + "\n";
}

/// The flags that all of these plans need.
std::vector<std::string> common_flags(const SearchResult& result, const SearchSubject& subject,
                                      const std::vector<std::size_t>& plans) {
  std::vector<std::string> common = flags_of(result.candidates[plans.front()].point, subject.config);
  for (const std::size_t index : plans) {
    const auto flags = flags_of(result.candidates[index].point, subject.config);
    std::erase_if(common, [&](const std::string& flag) { return std::ranges::find(flags, flag) == flags.end(); });
  }
  return common;
}

constexpr double most_times_the_fastest = 4;

/// Without those so slow that their memory is no reason to take them.
std::vector<std::size_t> of_interest(const SearchResult& result) {
  std::vector<std::size_t> some;
  for (const std::size_t index : result.pareto)
    if (result.candidates[index].found.step_s <= most_times_the_fastest * result.best()->found.step_s)
      some.push_back(index);
  return some;
}

std::string counts_of_pareto(std::size_t all, std::size_t near, std::size_t some) {
  std::string text = fmt::format("{} plans", count(all));
  if (near < all)
    text += fmt::format(", {} of them over {:g} times slower than the best", all - near, most_times_the_fastest);
  return text + (some < near ? fmt::format(", {} of {} shown", some, near < all ? "the others" : "them") : "");
}

/// The fastest, the smallest, and others evenly between them.
std::vector<std::size_t> shown(const std::vector<std::size_t>& pareto, std::size_t rows) {
  if (pareto.size() <= rows || rows < 2) return pareto;
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < rows; ++i) some.push_back(pareto[i * (pareto.size() - 1) / (rows - 1)]);
  return some;
}

std::string pareto(const SearchResult& result, const SearchSubject& subject) {
  const std::vector<std::size_t> near = of_interest(result);
  const auto some = shown(near, static_cast<std::size_t>(std::max(1, subject.rows)));
  std::string text = fmt::format("no other plan is as good in step time, memory and GPUs: {}\n",
                                 counts_of_pareto(result.pareto.size(), near.size(), some.size()));
  const auto common = common_flags(result, subject, some);
  if (!common.empty()) text += fmt::format("  all with {}\n", fmt::join(common, " "));
  text += heads(subject, "and");
  for (const std::size_t index : some) text += row(result.candidates[index], subject, common);
  const bool tight = std::ranges::any_of(some, [&](auto i) { return is_tight(result.candidates[i], subject); });
  return text + (tight ? tight_note() : "");
}

std::string likeness(const SearchResult& result, const SearchSubject& subject) {
  const auto alike = not_told_apart(result, subject);
  std::vector<std::string_view> names;
  for (const Runtime runtime : alike) names.push_back(name_of(runtime));
  if (names.empty()) return "";
  return fmt::format("  {} cannot be told apart: their steps differ by less than the error bar of time\n",
                     fmt::join(names, ", "));
}

/// Where runtimes are compared.
std::string best_of_each(const SearchResult& result, const SearchSubject& subject) {
  if (subject.runtimes.size() == 1) return "";
  std::string text = fmt::format("best of each profile\n  {:<16}{}", "", heads(subject, "with"));
  bool tight = false;
  for (const Runtime runtime : subject.runtimes) {
    const Candidate* found = result.best_of(runtime);
    text += fmt::format("  {:<16}{}", name_of(runtime), found ? row(*found, subject, {}) : "  no plan fits\n");
    tight = tight || (found && is_tight(*found, subject));
  }
  return text + (tight ? tight_note() : "") + likeness(result, subject) + "\n";
}

std::string sources(const Candidate& best, const SearchSubject& subject) {
  std::string text = "\nhardware\n";
  for (const std::string& line : hardware_sources(subject.cluster, best.point.gpus))
    text += fmt::format("  {}\n", line);
  return text + fmt::format("error bars\n  residuals of published runs ({})\n",
                            best.point.runtime == Runtime::own ? validation::error_bar_command()
                                                               : validation::torch_error_bar_command());
}

}  // namespace

std::string command_of(const Point& point, const Config& config) {
  const auto flags = flags_of(point, config);
  return flags.empty() ? "(as it is)" : fmt::format("{}", fmt::join(flags, " "));
}

std::string runtimes_text(const SearchSubject& subject) {
  std::vector<std::string_view> names;
  for (const Runtime runtime : subject.runtimes) names.push_back(name_of(runtime));
  return fmt::format("{}", fmt::join(names, ", "));
}

validation::ErrorBar step_time_error_bar(const SearchSubject& subject, const Point& point) {
  const bool own = point.runtime == Runtime::own;
  const validation::RunClass run{.gpu = catalogue_key_of(subject.cluster.device.name),
                                 .style = own                ? std::string(name_of(point.runtime))
                                          : subject.compiled ? "compiled"
                                                             : "eager",
                                 .gated = validation::has_gated_layers(subject.base.model),
                                 .gpus = point.gpus};
  return own ? validation::unseen_software_error_bar(run) : validation::torch_error_bar(run);
}

StepFlops step_flops_of(const plan::Settings& base) {
  const plan::Settings one = settings_of(base, Point{.parameters = base.schedule.master.value_or(DType::f32)});
  const plan::Plan plan =
      plan::build_plan(model::build(one.model, one.batch), one.mesh, one.schedule);  // of one sequence on one GPU
  const auto sequences = static_cast<double>(base.global_batch());
  return {.counted = model_flops(plan) * sequences, .masked = masked_flops(plan) * sequences};
}

Utilization utilization_of(const SearchSubject& subject, const Point& point, double step_s) {
  const double per_gpu = subject.step_flops.counted / step_s / point.gpus;
  return {per_gpu, per_gpu / peak_flops(subject.cluster, point)};
}

Utilization done_utilization_of(const SearchSubject& subject, const Point& point, double step_s) {
  const Utilization all = utilization_of(subject, point, step_s);
  const double done = 1 - subject.step_flops.masked / subject.step_flops.counted;
  return {all.flops_per_s * done, all.part * done};
}

std::string warning_text(const Utilization& done) {
  return fmt::format("warning: {:.1f} % of peak is not plausible (5 to 75 % are); check model, batch and cluster\n",
                     100 * done.part);
}

bool is_tight(const Candidate& candidate, const SearchSubject& subject) {
  if (candidate.point.runtime == Runtime::own) return false;
  const double most = 1 + validation::memory_error_bar(false).pct / 100;
  return static_cast<double>(candidate.found.memory_bytes) * most > subject.cluster.device.memory_bytes.value;
}

std::vector<Runtime> not_told_apart(const SearchResult& result, const SearchSubject& subject) {
  std::vector<const Candidate*> bests;
  for (const Runtime runtime : subject.runtimes)
    if (const Candidate* best = result.best_of(runtime)) bests.push_back(best);
  std::ranges::stable_sort(bests, {}, [](const Candidate* best) { return best->found.step_s; });
  std::vector<Runtime> alike;
  for (const Candidate* best : bests) {
    const double bar =
        std::max(step_time_error_bar(subject, bests.front()->point).pct, step_time_error_bar(subject, best->point).pct);
    if (best->found.step_s / bests.front()->found.step_s - 1 < bar / 100) alike.push_back(best->point.runtime);
  }
  return alike.size() > 1 ? alike : std::vector<Runtime>{};
}

std::string reason_of(const SearchResult& result, const Candidate& candidate, std::int64_t device_bytes) {
  switch (candidate.fate) {
    case Fate::simulated:
      return "fits";
    case Fate::too_large:
      return fmt::format("needs {} of {}", bytes_text(candidate.found.memory_bytes), bytes_text(device_bytes));
    case Fate::cannot_fit:
      return fmt::format("needs at least {} of {}", bytes_text(candidate.bound.memory_bytes), bytes_text(device_bytes));
    case Fate::not_simulated:
      return fmt::format("at least {} and {}; not simulated", duration_text(candidate.bound.seconds),
                         bytes_text(candidate.bound.memory_bytes));
    case Fate::cannot_be_best:
      break;
  }
  const Candidate& other = result.candidates[candidate.by];
  return fmt::format("at least {} and {}; plan {} has {} and {}", duration_text(candidate.bound.seconds),
                     bytes_text(candidate.bound.memory_bytes), candidate.by, duration_text(other.found.step_s),
                     bytes_text(other.found.memory_bytes));
}

std::string search_text(const SearchResult& result, const SearchSubject& subject) {
  std::string text = header(result, subject) + fates(result, subject);
  if (const Candidate* fastest = result.best())
    text +=
        best(*fastest, subject) + best_of_each(result, subject) + pareto(result, subject) + sources(*fastest, subject);
  return text;
}

}  // namespace foreshard::sim::planner
