#include "model/hf_config_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace foreshard::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_bytes = std::size_t{16} << 20;  // they have a few kB
constexpr std::string_view expectation =
    "expected the config.json of a Hugging Face model, or the folder that it is in";
constexpr int deepest = 32;
/// Products of two sizes stay far within 64 bits.
constexpr std::int64_t largest = INT32_MAX;
constexpr std::size_t shown_length = 60;

[[noreturn]] void refuse_file(const std::string& origin, std::string_view what) {
  throw InputError(ExitCode::bad_input, fmt::format("model.config: {}: {}; {}", origin, what, expectation));
}

std::string path_of_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  return (std::filesystem::path(path) / "config.json").string();
}

std::string content_of(const std::string& path) {
  return read_whole({path, "model.config:", std::string(expectation), most_bytes});
}

std::string text_of(const Json& value) {
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace), shown_length);
}

/// Without the library's own name for it.
std::string place_of(const Json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return shortened(end == std::string_view::npos ? text : text.substr(end + 2), shown_length);
}

bool is_whole(const Json& value, std::int64_t least, std::int64_t most = largest) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) return false;
  return value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
}

bool is_positive(const Json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0;
}

}  // namespace

HfConfigFile HfConfigFile::open(const std::string& path) {
  const std::string file = path_of_file(path);
  return parse(content_of(file), file);
}

HfConfigFile HfConfigFile::parse(std::string_view text, std::string origin) {
  const auto shallow = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > deepest) refuse_file(origin, fmt::format("nested more than {} deep", deepest));
    return true;
  };
  try {
    Json json = Json::parse(text, shallow);
    if (!json.is_object()) refuse_file(origin, fmt::format("{} is not an object", text_of(json)));
    return {std::move(json), std::move(origin)};
  } catch (const Json::exception& error) {
    refuse_file(origin, fmt::format("not JSON, or cut short ({})", place_of(error)));
  }
}

std::optional<std::string> HfConfigFile::find(hf::Spellings spellings) {
  std::optional<std::string> found;
  for (const std::string_view spelling : spellings) {
    mark(spelling);
    if (!has(spelling) || null(spelling)) continue;
    if (!found) {
      found = spelling;
    } else if (json_.at(*found) != json_.at(std::string(spelling))) {
      problem(fmt::format("{} is {}, but {}, another name of the same, is {}: remove one of the two", *found,
                          shown(*found), spelling, shown(spelling)));
    }
  }
  return found;
}

std::optional<std::int64_t> HfConfigFile::integer(hf::Spellings spellings, std::int64_t least, std::int64_t most) {
  const auto key = find(spellings);
  if (!key) return {};
  if (is_whole(json_.at(*key), least, most)) return json_.at(*key).get<std::int64_t>();
  refuse(*key, fmt::format("a whole number from {} to {}", least, most));
  return {};
}

std::optional<double> HfConfigFile::number(hf::Spellings spellings, double least, double most) {
  const auto key = find(spellings);
  if (!key) return {};
  const Json& value = json_.at(*key);
  if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most) return value.get<double>();
  refuse(*key, fmt::format("a number from {:g} to {:g}", least, most));
  return {};
}

std::optional<double> HfConfigFile::positive(hf::Spellings spellings) {
  const auto key = find(spellings);
  if (!key) return {};
  if (is_positive(json_.at(*key))) return json_.at(*key).get<double>();
  refuse(*key, "a number above 0");
  return {};
}

std::optional<bool> HfConfigFile::boolean(hf::Spellings spellings) {
  const auto key = find(spellings);
  if (!key) return {};
  if (json_.at(*key).is_boolean()) return json_.at(*key).get<bool>();
  refuse(*key, "true or false");
  return {};
}

std::optional<std::string> HfConfigFile::text(hf::Spellings spellings) {
  const auto key = find(spellings);
  if (!key) return {};
  if (json_.at(*key).is_string()) return json_.at(*key).get<std::string>();
  refuse(*key, "text");
  return {};
}

std::int64_t HfConfigFile::size(const hf::Size& key) { return size(key, key.absent, ""); }

std::int64_t HfConfigFile::size(const hf::Size& key, std::int64_t absent, std::string_view because) {
  if (const auto given = integer(key.spellings)) return *given;
  assume(key.own, fmt::format("{}{}", because, absent));
  return absent;
}

double HfConfigFile::positive(hf::Spellings spellings, std::string_view own, double absent) {
  if (const auto given = positive(spellings)) return *given;
  assume(own, fmt::format("{:g}", absent));
  return absent;
}

bool HfConfigFile::boolean(hf::Spellings spellings, bool absent) {
  if (const auto given = boolean(spellings)) return *given;
  assume(spellings.front(), absent ? "true" : "false");
  return absent;
}

std::pair<std::int64_t, std::int64_t> HfConfigFile::pair(std::string_view key, std::int64_t absent) {
  mark(key);
  if (!has(key) || null(key)) {
    assume(key, fmt::format("{}", absent));
    return {absent, absent};
  }
  const Json& value = json_.at(std::string(key));
  if (is_whole(value, 1)) return {value.get<std::int64_t>(), value.get<std::int64_t>()};
  if (value.is_array() && value.size() == 2 && is_whole(value[0], 1) && is_whole(value[1], 1))
    return {value[0].get<std::int64_t>(), value[1].get<std::int64_t>()};
  refuse(key, fmt::format("a whole number from 1 to {}, or two of them", largest));
  return {absent, absent};
}

std::vector<HfConfigFile> HfConfigFile::array(std::string_view key) {
  mark(key);
  std::vector<HfConfigFile> entries;
  if (!has(key) || null(key)) return entries;
  const Json& value = json_.at(std::string(key));
  const bool objects = value.is_array() && std::ranges::all_of(value, [](const Json& one) { return one.is_object(); });
  if (objects) {
    for (const Json& one : value) entries.push_back(HfConfigFile(one, origin_));
  } else {
    refuse(key, "a list of objects");
  }
  return entries;
}

std::vector<std::string> HfConfigFile::texts(std::string_view key) {
  mark(key);
  if (!has(key) || null(key)) return {};
  const Json& value = json_.at(std::string(key));
  const bool strings = value.is_array() && std::ranges::all_of(value, [](const Json& one) { return one.is_string(); });
  if (strings) return value.get<std::vector<std::string>>();
  refuse(key, "a list of strings");
  return {};
}

std::optional<std::int64_t> HfConfigFile::entries(std::string_view key) {
  mark(key);
  if (!has(key) || null(key)) return {};
  const Json& value = json_.at(std::string(key));
  if (value.is_object()) return static_cast<std::int64_t>(value.size());
  refuse(key, "an object");
  return {};
}

HfConfigFile HfConfigFile::object(std::string_view key) {
  mark(key);
  HfConfigFile inner(Json::object(), origin_);
  if (!has(key) || null(key)) return inner;
  const Json& value = json_.at(std::string(key));
  if (value.is_object()) {
    inner.json_ = value;
  } else {
    refuse(key, "an object");
  }
  return inner;
}

void HfConfigFile::take(std::string_view key, const HfConfigFile& inner) {
  for (const std::string& text : inner.notes_) note(fmt::format("{}: {}", key, text));
  for (const std::string& text : inner.problems_) problem(fmt::format("{}: {}", key, text));
}

std::string HfConfigFile::shown(std::string_view key) const {
  return has(key) ? text_of(json_.at(std::string(key))) : "missing";
}

void HfConfigFile::refuse(std::string_view key, std::string_view expected) {
  problem(fmt::format("{} is {}, expected {}", key, shown(key), expected));
}

std::vector<std::string> HfConfigFile::unused() const {
  std::vector<std::string> keys;
  for (const auto& item : json_.items())
    if (!read_.contains(item.key())) keys.push_back(shortened(item.key(), shown_length));
  return keys;
}

}  // namespace foreshard::model
