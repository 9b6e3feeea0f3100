#include "sim/validation/command.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/config.hpp"
#include "base/error.hpp"
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

void keep(const CsvTable& table, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (!std::filesystem::is_directory(folder))
    throw InputError(ExitCode::usage, fmt::format("--out={}: is no folder and cannot be made one ({})\n  expected: a "
                                                  "folder, or a name in one that exists",
                                                  folder, error ? error.message() : "it is a file"));
  write_csv((std::filesystem::path(folder) / std::filesystem::path(table.path).filename()).string(), table);
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
  for (const std::string& path : config.arguments()) {
    CsvTable table = read_csv(path);
    if (table.rows.empty()) throw InputError(ExitCode::bad_input, path + ": has a header line, and no rows under it");
    validate(table, profile, validation, level);
    keep(table, config.get<std::string>("out"));
  }
  fmt::print("{}\n", config.get<bool>("json") ? to_json(validation).dump(1) : to_text(validation));
  return 0;
}

}  // namespace foreshard::sim::validation
