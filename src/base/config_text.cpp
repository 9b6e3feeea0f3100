// What a Config shows of itself: help, the resolved configuration, overrides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/config_sources.hpp"

namespace foreshard {

namespace {

std::string section_of(std::string_view key) {
  const std::size_t dot = key.find('.');
  return dot == std::string_view::npos ? "" : std::string(key.substr(0, dot));
}

std::string name_in_section(std::string_view key) {
  const std::size_t dot = key.find('.');
  return std::string(dot == std::string_view::npos ? key : key.substr(dot + 1));
}

std::string option_line(const std::string& option, const std::string& description) {
  if (option.size() < 32) return fmt::format("  {:<32}{}\n", option, description);
  return fmt::format("  {}\n  {:32}{}\n", option, "", description);
}

}  // namespace

std::vector<std::string> Config::sections() const {
  std::vector<std::string> found;
  for (const std::string& key : order_) {
    const std::string section = section_of(key);
    if (!section.empty() && std::ranges::find(found, section) == found.end()) found.push_back(section);
  }
  return found;
}

std::vector<std::string> Config::keys_of(std::string_view section) const {
  std::vector<std::string> found;
  std::ranges::copy_if(order_, std::back_inserter(found), [&](const auto& key) { return section_of(key) == section; });
  return found;
}

std::vector<std::string> Config::overrides() const {
  std::vector<std::string> lines;
  for (const std::string& section : sections()) {
    for (const std::string& name : keys_of(section)) {
      const Key& key = find(name);
      if (key.origin != "default")
        lines.push_back(fmt::format("override: {} = {} (from {})", name, key.value, key.origin));
    }
  }
  return lines;
}

std::string Config::resolved_ini() const {
  std::string text =
      fmt::format("# Resolved configuration of {}. To run the same again: {} --config THIS_FILE\n", program_, program_);
  for (const std::string& section : sections()) {
    text += fmt::format("\n[{}]\n", section);
    for (const std::string& name : keys_of(section)) {
      const Key& key = find(name);
      text += fmt::format("# {} (from {})\n{} = {}\n", key.description, key.origin, name_in_section(name), key.value);
    }
  }
  return text;
}

nlohmann::json Config::to_json() const {
  nlohmann::json json = nlohmann::json::object();
  for (const std::string& section : sections()) {
    for (const std::string& name : keys_of(section)) {
      nlohmann::json& value = json[section][name_in_section(name)];
      switch (find(name).kind) {
        case Kind::boolean:
          value = boolean(name);
          break;
        case Kind::integer:
          value = integer(name, INT64_MIN, INT64_MAX);
          break;
        case Kind::real:
          value = real(name);
          break;
        case Kind::text:
          value = text(name);
          break;
      }
    }
  }
  return json;
}

std::string Config::help_of(const std::string& name) const {
  const Key& key = find(name);
  constexpr std::string_view placeholders[] = {"", " N", " X", " TEXT"};
  std::string placeholder(placeholders[static_cast<int>(key.kind)]);
  if (!key.details.choices.empty()) placeholder = fmt::format(" {}", fmt::join(key.details.choices, "|"));
  const std::string unit = key.details.unit.empty() ? "" : " " + key.details.unit;
  std::string facts;
  if (!key.initial.empty()) facts = fmt::format("default: {}{}", key.initial, unit);
  if (key.initial.empty() && !unit.empty()) facts = fmt::format("unit:{}", unit);
  if (!section_of(name).empty()) facts += fmt::format("{}env: {}", facts.empty() ? "" : "; ", environment_name(name));
  std::string text = option_line("--" + name + placeholder, key.description);
  const bool plain_switch = key.kind == Kind::boolean && section_of(name).empty();
  if (!facts.empty() && !plain_switch) text += fmt::format("  {:32}[{}]\n", "", facts);
  return text;
}

std::string Config::help() const {
  std::string text =
      fmt::format("Usage: {} [options]{}{}\n", program_, argument_rule_.max > 0 ? " " : "", argument_rule_.name);
  if (!summary_.empty()) text += fmt::format("{}\n", summary_);
  if (!examples_.empty()) text += "\nExamples:\n";
  for (const std::string& line : examples_) text += fmt::format("  {}\n", line);
  if (argument_rule_.max > 0) text += "\nArguments:\n" + option_line(argument_rule_.name, argument_rule_.description);
  text += "\nOptions (--key=value or --key value):\n";
  for (const std::string& name : keys_of("")) text += help_of(name);
  const bool shares = !sections().empty();
  if (shares) text += option_line("--config FILE", "INI file; repeatable, later files win");
  text += option_line("--help, -h", "this text") + option_line("--version", "version, build and libraries");
  for (const std::string& section : sections()) {
    text += fmt::format("\n[{}]\n", section);
    for (const std::string& name : keys_of(section)) text += help_of(name);
  }
  if (shares) {
    text += fmt::format("\nStrongest first: flags, environment, --config files, {}, defaults.\n",
                        user_config_path().empty() ? "~/.config/foreshard/config.ini" : user_config_path().string());
  }
  return text;
}

}  // namespace foreshard
