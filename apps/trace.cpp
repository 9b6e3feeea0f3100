// foreshard-trace: what is in a trace, whether it is sound, and the same in other formats.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/run_main.hpp"
#include "base/text.hpp"
#include "trace/check.hpp"
#include "trace/export.hpp"
#include "trace/overview.hpp"
#include "trace/reader.hpp"

namespace {

using foreshard::Config;
using foreshard::ExitCode;
using foreshard::InputError;
using foreshard::trace::Finding;
using foreshard::trace::Trace;

Config make_config() {
  Config config("foreshard-trace",
                "Shows, checks and exports a trace, measured or predicted.\n\n"
                "  info FILE    what is in it: steps, step time, lanes, collectives, memory\n"
                "  check FILE   whether it agrees with itself and its plan; exit code 4 if not\n"
                "  export FILE  the same for other programs: --perfetto OUT.json, --csv FOLDER or --csv OUT.csv");
  config.example("foreshard-trace info runs/demo/latest/trace.h5");
  config.example("foreshard-trace check trace.h5.part");
  config.example("foreshard-trace export trace.h5 --perfetto trace.json --steps 5:7 --ranks 0,1");
  config.example("foreshard-trace export trace.h5 --csv tables/");
  config.add_arguments("info|check|export FILE", "what to do, and the trace", 2, 2);
  config.add("json", false, "info, check: print one JSON object");
  config.add("perfetto", "", "export: Chrome trace JSON to write");
  config.add("csv", "", "export: folder for all tables, or a .csv file for the events alone");
  config.add("steps", "", "export: only these steps, e.g. 3, 3:7 or 3:");
  config.add("ranks", "", "export: only these ranks, e.g. 0, 0,3 or 0:3");
  config.add("force", false, "export: overwrite files that exist");
  return config;
}

void hint(const std::string& text) { fmt::print(stderr, "open with: {}\n", text); }

int info(const Config& config, const Trace& trace) {
  const auto overview = foreshard::trace::overview_of(trace);
  if (config.get<bool>("json"))
    fmt::print("{}\n", foreshard::json_text(json_of(trace, overview)));
  else
    fmt::print("{}", text_of(trace, overview));
  hint(fmt::format("foreshard-trace export {} --perfetto trace.json", trace.path));
  return 0;
}

nlohmann::ordered_json json_of(const Trace& trace, const std::vector<Finding>& findings, bool passed) {
  nlohmann::ordered_json json{
      {"schema", "foreshard-trace-check"}, {"schema_version", 1}, {"path", trace.path},
      {"complete", trace.complete},        {"passed", passed},    {"events", trace.rows.size()}};
  for (const Finding& finding : findings)
    json["checks"].push_back({{"check", finding.check},
                              {"looked_at", finding.looked_at},
                              {"violations", finding.violations},
                              {"first_violation", finding.first_violation}});
  return json;
}

void print_findings(const Trace& trace, const std::vector<Finding>& findings) {
  fmt::print("{}\n", trace.path);
  for (const Finding& finding : findings) {
    fmt::print("  {}  {:<8}{} ({} looked at)\n", finding.violations ? "FAIL" : "ok  ", finding.check, finding.what,
               finding.looked_at);
    if (finding.violations)
      fmt::print("        {} violations, the first: {}\n", finding.violations, finding.first_violation);
  }
  if (!trace.complete)
    fmt::print(
        "  not closed by its run: {} events of {} steps of {} ranks are recovered; the run's totals are missing\n",
        trace.rows.size(), foreshard::trace::overview_of(trace).steps.size(), trace.events.size());
}

int check(const Config& config, const Trace& trace) {
  const auto findings = foreshard::trace::check(trace);
  bool passed = true;
  for (const Finding& finding : findings) passed = passed && finding.violations == 0;
  if (config.get<bool>("json"))
    fmt::print("{}\n", foreshard::json_text(json_of(trace, findings, passed)));
  else
    print_findings(trace, findings);
  hint(fmt::format("foreshard-trace info {}", trace.path));
  return static_cast<int>(passed ? ExitCode::done : ExitCode::outside);
}

foreshard::trace::Selection selection_of(const Config& config) {
  foreshard::trace::Selection selection;
  if (!config.is_default("steps")) select_steps(selection, config.get<std::string>("steps"));
  if (!config.is_default("ranks")) select_ranks(selection, config.get<std::string>("ranks"));
  return selection;
}

int export_to(const Config& config, const Trace& trace) {
  const auto perfetto = config.get<std::string>("perfetto"), csv = config.get<std::string>("csv");
  if (perfetto.empty() && csv.empty())
    throw InputError(ExitCode::usage, "export needs --perfetto OUT.json, --csv FOLDER or --csv OUT.csv");
  const auto selection = selection_of(config);
  const bool force = config.get<bool>("force");
  if (!perfetto.empty()) {
    export_perfetto(trace, selection, perfetto, force);
    hint(fmt::format("https://ui.perfetto.dev (drop {} onto the page), or chrome://tracing", perfetto));
  }
  if (!csv.empty()) {
    export_csv(trace, selection, csv, force);
    hint(csv.ends_with(".csv") ? fmt::format("python3 -c 'import pandas; print(pandas.read_csv(\"{}\"))'", csv)
                               : fmt::format("any spreadsheet, or pandas.read_csv(\"{}\")",
                                             (std::filesystem::path(csv) / "events.csv").string()));
  }
  return 0;
}

int run(int argc, char** argv) {
  Config config = make_config();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const std::string& verb = config.arguments()[0];
  const std::vector<std::string> verbs{"info", "check", "export"};
  if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end())
    throw InputError(ExitCode::usage, fmt::format("unknown command `{}`: expected info, check or export.{}", verb,
                                                  foreshard::did_you_mean(verb, verbs)));
  const Trace trace = foreshard::trace::read(config.arguments()[1]);
  if (verb == "info") return info(config, trace);
  return verb == "check" ? check(config, trace) : export_to(config, trace);
}

}  // namespace

int main(int argc, char** argv) {
  return foreshard::run_main("foreshard-trace", [&] { return run(argc, argv); });
}
