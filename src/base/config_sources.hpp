#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// One key set by one source.
struct Setting {
  std::string key;
  std::optional<std::string> value;  ///< absent: a flag that stands alone
  std::string origin;                ///< "flag", "environment FORESHARD_TRAIN__STEPS", "job.ini:3"
  std::string shown;                 ///< how a message names it: "--train.steps", "job.ini:3: train.steps"
};

/// What stands on a command line: flags and arguments without a name, each in order.
struct CommandLine {
  std::vector<Setting> flags;
  std::vector<std::string> arguments;
};

/// Splits a command line, without abbreviations. `--key=value`, of which the value may be empty, or `--key value`; a
/// flag for which `is_boolean` holds takes the next word only if that is a boolean. `-h` is `--help`.
CommandLine read_command_line(int argc, const char* const* argv,
                              const std::function<bool(std::string_view)>& is_boolean);

/// Settings of an INI file: `[section]`, `key = value`; `#` and `;` begin a comment line, ` #` a comment. Appends to
/// `problems` if the file cannot be read and for each line that is neither.
std::vector<Setting> read_ini(const std::filesystem::path& path, std::vector<std::string>& problems);

/// "FORESHARD_TRAIN__STEPS" of "train.steps"
std::string environment_name(std::string_view key);

/// Settings of the environment: variables FORESHARD_SECTION__KEY, and those that would be one of `keys` if a single
/// underscore were the double one that it should be (their key then has no dot).
std::vector<Setting> read_environment(const std::vector<std::string>& keys);

/// $XDG_CONFIG_HOME/foreshard/config.ini, or ~/.config/foreshard/config.ini; empty if neither variable is set.
std::filesystem::path user_config_path();

/// true or false from true/false, on/off, yes/no, 1/0.
std::optional<bool> parse_boolean(std::string_view text);

}  // namespace foreshard
