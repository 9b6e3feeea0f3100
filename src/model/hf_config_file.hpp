#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/hf_config_keys.hpp"

namespace foreshard::model {

/// A configuration file while it is read. What is wrong is collected, not thrown, so that the user sees all of it; so
/// is what had to be assumed, and which keys nobody asked for. Values that are wrong read as if they were missing.
class HfConfigFile {
 public:
  /// Reads `path`, a JSON file, or the config.json of a folder. Throws InputError(bad_input) if that cannot be read, is
  /// larger than a configuration ever is, is not JSON or not an object, or is nested too deeply.
  static HfConfigFile open(const std::string& path);
  /// The same of text; `origin` is for messages.
  static HfConfigFile parse(std::string_view text, std::string origin);

  /// Each reader takes the first spelling with a value other than null, and refuses two that disagree. Nothing is
  /// noted where a key is missing.
  std::optional<std::int64_t> integer(hf::Spellings spellings, std::int64_t least = 1, std::int64_t most = INT32_MAX);
  std::optional<double> number(hf::Spellings spellings, double least, double most);
  std::optional<double> positive(hf::Spellings spellings);  ///< a number above 0
  std::optional<bool> boolean(hf::Spellings spellings);
  std::optional<std::string> text(hf::Spellings spellings);

  /// The same with what is assumed where the key is missing, which is noted.
  std::int64_t size(const hf::Size& key);
  std::int64_t size(const hf::Size& key, std::int64_t absent, std::string_view because);
  double positive(hf::Spellings spellings, std::string_view own, double absent);
  bool boolean(hf::Spellings spellings, bool absent);

  /// True for a key that is there, whatever its value; `null`: and is null.
  bool has(std::string_view key) const { return json_.contains(key); }
  bool null(std::string_view key) const { return has(key) && json_.at(std::string(key)).is_null(); }
  /// A whole number, or two of them for height and width.
  std::pair<std::int64_t, std::int64_t> pair(std::string_view key, std::int64_t absent);
  /// The objects of the list at `key`, each as a file of its own.
  std::vector<HfConfigFile> array(std::string_view key);
  /// The strings of the list at `key`; none if that is missing or null.
  std::vector<std::string> texts(std::string_view key);
  /// How many entries the object at `key` has.
  std::optional<std::int64_t> entries(std::string_view key);
  /// The object at `key` as a file of its own, empty if there is none; its notes and problems count
  /// once they are taken back.
  HfConfigFile object(std::string_view key);
  void take(std::string_view key, const HfConfigFile& inner);
  /// Value of a key, as JSON, shortened.
  std::string shown(std::string_view key) const;

  void note(std::string text) { notes_.push_back(std::move(text)); }
  void assume(std::string_view key, std::string_view value) {
    note(std::string(key) + " not given: " + std::string(value));
  }
  /// "KEY is VALUE, expected …".
  void refuse(std::string_view key, std::string_view expected);
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  /// Says that a key was looked at.
  void mark(std::string_view key) { read_.emplace(key); }

  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<std::string>& problems() const { return problems_; }
  /// Keys that nobody read, as in the file's order.
  std::vector<std::string> unused() const;
  const std::string& origin() const { return origin_; }

 private:
  HfConfigFile(nlohmann::ordered_json json, std::string origin) : json_(std::move(json)), origin_(std::move(origin)) {}
  std::optional<std::string> find(hf::Spellings spellings);

  nlohmann::ordered_json json_;
  std::string origin_;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> notes_, problems_;
};

}  // namespace foreshard::model
