#include "base/config_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <sstream>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace foreshard {

namespace po = boost::program_options;

namespace {

constexpr std::string_view environment_prefix = "FORESHARD_";

/// `--key` or `--key=value`, whose value may be empty.
Setting flag_of(std::string_view word) {
  const std::size_t equals = word.find('=');
  const std::string shown(word.substr(0, equals));
  Setting setting{shown.substr(2), {}, "flag", shown};
  if (equals != std::string_view::npos) setting.value = word.substr(equals + 1);
  return setting;
}

bool is_flag(std::string_view word) { return word.starts_with("--"); }
bool is_help(std::string_view word) { return word == "-h"; }
bool is_value(std::string_view word) { return !is_flag(word) && !is_help(word); }

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// The key that a variable means; empty if it is none of ours.
std::string key_of(std::string_view variable, const std::vector<std::string>& keys) {
  if (!variable.starts_with(environment_prefix)) return {};
  const std::string name = lower_case(variable.substr(environment_prefix.size()));
  if (name.find("__") != std::string::npos) return replaced(name, "__", ".");
  const bool misspelt = std::ranges::any_of(keys, [&](const auto& key) { return replaced(key, ".", "_") == name; });
  return misspelt ? name : std::string();
}

/// For a message: no more than the beginning, and of that what is text.
std::string shown(std::string_view text) {
  const std::string_view characters = text.substr(0, utf8_prefix(text));
  std::string result = shortened(characters, 60);
  if (characters.size() < text.size() && result.size() == characters.size()) result += "…";
  std::ranges::replace_if(
      result, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return result;
}

std::string_view without_comment(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.empty() || text.front() == '#' || text.front() == ';') return {};
  return trimmed(text.substr(0, std::min(text.find(" #"), text.find("\t#"))));
}

bool is_section(std::string_view line) { return line.size() > 2 && line.front() == '[' && line.back() == ']'; }

Setting ini_setting(std::string_view section, std::string_view line, const std::string& origin) {
  const std::size_t equals = line.find('=');
  const std::string_view name = trimmed(line.substr(0, equals));
  const std::string key = section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
  return {key, std::string(trimmed(line.substr(equals + 1))), origin, fmt::format("{}: {}", origin, key)};
}

}  // namespace

std::optional<bool> parse_boolean(std::string_view text) {
  const std::string word = lower_case(text);
  for (const char* yes : {"true", "on", "yes", "1"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "off", "no", "0"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

CommandLine read_command_line(int argc, const char* const* argv,
                              const std::function<bool(std::string_view)>& is_boolean) {
  CommandLine line;
  const std::vector<std::string_view> words(argv + std::min(1, argc), argv + argc);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_help(words[i])) line.flags.push_back({"help", {}, "flag", "-h"});
    if (is_value(words[i])) line.arguments.emplace_back(words[i]);
    if (!is_flag(words[i])) continue;
    Setting setting = flag_of(words[i]);
    const bool may_take_next = !setting.value && i + 1 < words.size() && is_value(words[i + 1]);
    if (may_take_next && (!is_boolean(setting.key) || parse_boolean(words[i + 1]))) setting.value = words[++i];
    line.flags.push_back(std::move(setting));
  }
  return line;
}

std::vector<Setting> read_ini(const std::filesystem::path& path, std::vector<std::string>& problems) {
  std::vector<Setting> settings;
  std::istringstream file;
  try {
    file.str(read_whole({path, "configuration file", "expected lines `key = value`"}));
  } catch (const InputError& error) {
    problems.emplace_back(error.what());
  }
  std::string line, section;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = without_comment(line);
    const std::string origin = fmt::format("{}:{}", path.string(), number);
    if (text.empty()) continue;
    if (is_section(text)) {
      section = trimmed(text.substr(1, text.size() - 2));
    } else if (text.find('=') == std::string_view::npos) {
      problems.push_back(fmt::format("{}: `{}` is neither `[section]` nor `key = value`", origin, shown(text)));
      if (utf8_prefix(text) < text.size()) return settings;  // no configuration at all
    } else {
      settings.push_back(ini_setting(section, text, origin));
    }
  }
  return settings;
}

std::string environment_name(std::string_view key) {
  std::string name = replaced(std::string(key), ".", "__");
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::string(environment_prefix) + name;
}

std::vector<Setting> read_environment(const std::vector<std::string>& keys) {
  std::vector<Setting> settings;
  const auto mapper = [&](const std::string& variable) { return key_of(variable, keys); };
  for (const po::option& option : po::parse_environment(po::options_description(), mapper).options) {
    const std::string origin = "environment " + environment_name(option.string_key);
    settings.push_back({option.string_key, option.value.front(), origin, origin});
  }
  return settings;
}

std::filesystem::path user_config_path() {
  const char* config_home = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config_home != nullptr && *config_home != '\0')
    return std::filesystem::path(config_home) / "foreshard/config.ini";
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / ".config/foreshard/config.ini";
  return {};
}

}  // namespace foreshard
