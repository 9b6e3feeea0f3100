#include "base/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/config_sources.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard {

namespace {

constexpr std::string_view other_commands_key =
    " If it is a key of another command, put it into a --config file, where this one passes it over.";
constexpr std::string_view built_in[] = {"help", "version", "config"};

bool has_section(std::string_view key) { return key.find('.') != std::string_view::npos; }

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || text.empty()) return std::nullopt;
  return number;
}

std::string bounds_text(const KeyDetails& details) {
  std::string text;
  if (std::isfinite(details.min)) text += fmt::format(" of at least {}", details.min);
  if (std::isfinite(details.max)) text += fmt::format("{}at most {}", text.empty() ? " of " : " and ", details.max);
  return text;
}

bool within(double number, const KeyDetails& details) { return number >= details.min && number <= details.max; }

}  // namespace

Config::Config(std::string program, std::string summary) : program_(std::move(program)), summary_(std::move(summary)) {}

void Config::example(std::string command_line) { examples_.push_back(std::move(command_line)); }

void Config::add_key(Kind kind, std::string key, std::string value, std::string description, KeyDetails details) {
  FORESHARD_EXPECT(!keys_.contains(key), "key declared twice: " + key);
  Key declared{kind, value, value, std::move(description), "default", std::move(details)};
  FORESHARD_EXPECT(fault_of(declared, value).empty(), "default of " + key + ": " + fault_of(declared, value));
  order_.push_back(key);
  keys_.emplace(std::move(key), std::move(declared));
}

void Config::add_arguments(std::string name, std::string description, int min, int max) {
  argument_rule_ = {std::move(name), std::move(description), min, max};
}

void Config::ignore(std::initializer_list<std::string_view> keys) { ignored_.assign(keys.begin(), keys.end()); }

std::string Config::number_text(double value) { return fmt::format("{}", value); }

std::string Config::fault_of(const Key& key, std::string_view value) {
  switch (key.kind) {
    case Kind::boolean:
      return parse_boolean(value) ? "" : "is not a boolean; give true or false";
    case Kind::integer: {
      const auto number = parse_number<std::int64_t>(value);
      if (number && within(static_cast<double>(*number), key.details)) return "";
      return fmt::format("is not an integer{}", bounds_text(key.details));
    }
    case Kind::real: {
      const auto number = parse_number<double>(value);
      if (number && std::isfinite(*number) && within(*number, key.details)) return "";
      return fmt::format("is not a number{}", bounds_text(key.details));
    }
    case Kind::text:
      break;
  }
  const auto& choices = key.details.choices;
  if (choices.empty() || std::ranges::find(choices, value) != choices.end()) return "";
  std::vector<std::string> named = choices;
  std::erase(named, "");  // not given
  return fmt::format("is not one of {}.{}", fmt::join(named, ", "), did_you_mean(value, named));
}

bool Config::ignores(std::string_view key) const {
  return std::ranges::any_of(
      ignored_, [&](const std::string& item) { return item == key || (item.ends_with('.') && key.starts_with(item)); });
}

std::string Config::suggestion(const Setting& setting) const {
  const bool of_environment = setting.origin.starts_with("environment");
  std::vector<std::string> names;
  for (const std::string& key : order_) {
    if (setting.origin == "flag" || has_section(key)) names.push_back(of_environment ? environment_name(key) : key);
  }
  if (setting.origin == "flag") names.insert(names.end(), std::begin(built_in), std::end(built_in));
  const std::string name = nearest(of_environment ? environment_name(setting.key) : setting.key, names);
  if (name.empty()) return "";
  return fmt::format(" Did you mean `{}{}`?", setting.origin == "flag" ? "--" : "", name);
}

void Config::set(Key& key, const Setting& setting) {
  if (!setting.value && key.kind != Kind::boolean) {
    problems_.push_back(fmt::format("{}: needs a value: {}", setting.shown, key.description));
    return;
  }
  const std::string value = setting.value.value_or("true");
  const std::string fault = fault_of(key, value);
  if (!fault.empty()) problems_.push_back(fmt::format("{}: `{}` {}", setting.shown, value, fault));
  key.value = value;
  key.origin = setting.origin;
}

void Config::apply(const Setting& setting, bool shared) {
  const auto found = keys_.find(setting.key);
  if (found != keys_.end() && (!shared || has_section(setting.key))) return set(found->second, setting);
  if (shared && ignores(setting.key)) return;
  problems_.push_back(fmt::format("{}: unknown {}.{}{}", setting.shown, shared ? "key" : "option", suggestion(setting),
                                  ignores(setting.key) ? other_commands_key : ""));
}

void Config::take_built_in(std::vector<Setting>& flags) {
  std::erase_if(flags, [this](const Setting& flag) {
    help_wanted_ |= flag.key == "help";
    version_wanted_ |= flag.key == "version";
    if (flag.key == "config" && flag.value) files_.push_back(*flag.value);
    if (flag.key == "config" && !flag.value) problems_.push_back("--config: needs a value: an INI file");
    return std::ranges::find(built_in, flag.key) != std::end(built_in);
  });
}

void Config::check_argument_count() {
  const int count = static_cast<int>(arguments_.size());
  const auto& rule = argument_rule_;
  if (rule.max == 0 && count > 0) {
    problems_.push_back(fmt::format("unexpected argument `{}`: options begin with --", arguments_.front()));
  } else if (count < rule.min || count > rule.max) {
    problems_.push_back(fmt::format("{} argument(s) given, {} needs {}{}: {}", count, program_, rule.min,
                                    rule.max > rule.min ? " or more" : "", rule.name));
  }
}

void Config::parse(int argc, const char* const* argv) {
  const auto is_boolean = [this](std::string_view key) {
    const auto found = keys_.find(key);
    return key == "help" || key == "version" || (found != keys_.end() && found->second.kind == Kind::boolean);
  };
  CommandLine line = read_command_line(argc, argv, is_boolean);
  arguments_ = std::move(line.arguments);
  take_built_in(line.flags);
  const bool shares = std::ranges::any_of(order_, has_section);
  const auto user_file = user_config_path();
  if (shares && !user_file.empty() && std::filesystem::exists(user_file)) files_.insert(files_.begin(), user_file);
  for (const std::string& file : files_) {
    for (const Setting& setting : read_ini(file, problems_)) apply(setting, true);
  }
  if (shares) {
    for (const Setting& setting : read_environment(order_)) apply(setting, true);
  }
  for (const Setting& setting : line.flags) apply(setting, false);
  check_argument_count();
  if (help_wanted_ || version_wanted_ || problems_.empty()) return;
  throw InputError(ExitCode::usage, numbered(fmt::format("{} problems:", problems_.size()), problems_));
}

const Config::Key& Config::find(std::string_view key) const {
  const auto found = keys_.find(key);
  FORESHARD_EXPECT(found != keys_.end(), "no such key: " + std::string(key));
  return found->second;
}

bool Config::boolean(std::string_view key) const { return parse_boolean(find(key).value).value_or(false); }

std::int64_t Config::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const Key& found = find(key);
  FORESHARD_EXPECT(found.kind == Kind::integer, "not an integer: " + std::string(key));
  const std::int64_t number = parse_number<std::int64_t>(found.value).value_or(0);
  if (number >= min && number <= max) return number;
  throw InputError(ExitCode::usage,
                   fmt::format("{} = {} (from {}): must lie between {} and {}", key, number, found.origin, min, max));
}

double Config::real(std::string_view key) const {
  const Key& found = find(key);
  FORESHARD_EXPECT(found.kind == Kind::real || found.kind == Kind::integer, "not a number: " + std::string(key));
  return parse_number<double>(found.value).value_or(0);
}

const std::string& Config::origin(std::string_view key) const { return find(key).origin; }

}  // namespace foreshard
