#include "sim/validation/command.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/output_files.hpp"
#include "base/run_main.hpp"
#include "sim/validation/validate.hpp"

namespace foreshard::sim::validation {
namespace {

Config keys() {
  Config config("foreshard-plan validate", "Predicts published runs and says how far off the predictions are.");
  config.example("foreshard-plan validate tests/data/measurements/*.csv");
  config.add_arguments("FILE.csv", "tables of published runs, as tests/data/measurements/README.md describes them", 1,
                       1 << 16);
  config.add("json", false, "print one JSON object");
  config.add("level", "closed-form",
             "closed-form; event: simulates steps of PyTorch's FSDP besides, minutes for all rows",
             {.choices = {"closed-form", "event"}});
  config.add("out", "", "write each table with the predictions beside its rows into this folder");
  config.add("constants", "", "a JSON object of constants to use instead of those built in, by name");
  return config;
}

namespace fs = std::filesystem;

fs::path kept_as(const std::string& table, const std::string& folder) {
  return fs::path(folder) / fs::path(table).filename();
}

/// No table may be overwritten by its own predictions, nor predictions by those of a table of the same name.
void expect_places(const std::vector<std::string>& tables, const std::string& folder) {
  std::map<fs::path, std::string> kept;
  const std::vector<fs::path> inputs(tables.begin(), tables.end());
  if (folder.empty()) return;
  for (const std::string& table : tables) {
    const fs::path place = kept_as(table, folder);
    expect_no_input_overwritten(std::array{place}, inputs);
    if (const auto [before, is_new] = kept.emplace(place, table); !is_new && before->second != table)
      throw InputError(ExitCode::usage,
                       fmt::format("--out={}: {} and {} would both be written to {}\n  expected: tables "
                                   "of different names, or one call for each",
                                   folder, before->second, table, place.string()));
  }
}

void keep(const CsvTable& table, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directory(folder, error);
  if (!fs::is_directory(folder))
    throw InputError(ExitCode::usage, fmt::format("--out={}: is no folder and cannot be made one ({})\n  expected: a "
                                                  "folder, or a name in one that exists",
                                                  folder, error ? error.message() : "it is a file"));
  write_csv(kept_as(table.path, folder).string(), table);
}

}  // namespace

int validate_command(int argc, const char* const* argv) {
  Config config = keys();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  closed_form::Profile profile;
  if (const auto path = config.get<std::string>("constants"); !path.empty()) profile.override_from(path);
  const Level level = config.get<std::string>("level") == "event" ? Level::event : Level::closed_form;
  Validation validation;
  expect_places(config.arguments(), config.get<std::string>("out"));
  for (const std::string& path : config.arguments()) {
    CsvTable table = read_csv(path);
    if (table.rows.empty()) throw InputError(ExitCode::bad_input, path + ": has a header line, and no rows under it");
    validate(table, profile, validation, level);
    keep(table, config.get<std::string>("out"));
  }
  fmt::print("{}\n", config.get<bool>("json") ? json_text(to_json(validation), 1) : to_text(validation));
  return 0;
}

}  // namespace foreshard::sim::validation
