// foreshard-compare: a prediction beside its measurement.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/run_main.hpp"
#include "trace/comparison.hpp"

namespace {

using foreshard::Config;
using foreshard::ExitCode;
using foreshard::InputError;
using foreshard::trace::Kind;
using foreshard::trace::Trace;

Config make_config() {
  Config config("foreshard-compare",
                "Lays a predicted trace beside the measured one: time per phase and op kind, memory, collectives.\n"
                "Exit code 4 if the plans differ, the step time is off by more than the tolerance, or arena bytes or\n"
                "collectives are not equal.");
  config.example("foreshard-compare runs/demo/latest/trace.h5 predicted.h5");
  config.example("foreshard-compare measured.h5 predicted.h5 --tolerance 0.2 --json");
  config.add_arguments("MEASURED PREDICTED", "the two traces", 2, 2);
  config.add("tolerance", 0.10, "largest error of the step time, as a fraction", {.min = 0});
  config.add("skip-steps", 1, "first steps that do not count (warm-up)", {.min = 0});
  config.add("json", false, "print one JSON object");
  return config;
}

void expect_kind(const Trace& trace, Kind kind) {
  if (trace.run.kind == kind) return;
  const char* wanted = kind == Kind::measured ? "measured" : "predicted";
  throw InputError(
      ExitCode::usage,
      fmt::format("{} is not a {} trace: give the measured one first, then the predicted one", trace.path, wanted));
}

int run(int argc, char** argv) {
  Config config = make_config();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const Trace measured = foreshard::trace::read(config.arguments()[0]);
  const Trace predicted = foreshard::trace::read(config.arguments()[1]);
  expect_kind(measured, Kind::measured);
  expect_kind(predicted, Kind::predicted);
  const auto comparison = compare(measured, predicted, config.get<double>("tolerance"), config.get<int>("skip-steps"));
  if (config.get<bool>("json"))
    fmt::print("{}\n", foreshard::json_text(json_of(comparison)));
  else
    fmt::print("{}", text_of(comparison));
  fmt::print(stderr, "open with: foreshard-trace export {} --perfetto measured.json, and the same for {}\n",
             measured.path, predicted.path);
  return static_cast<int>(comparison.faults().empty() ? ExitCode::done : ExitCode::outside);
}

}  // namespace

int main(int argc, char** argv) {
  return foreshard::run_main("foreshard-compare", [&] { return run(argc, argv); });
}
