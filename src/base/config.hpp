#pragma once
#include <nlohmann/json_fwd.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// What a key's value may be, beyond its type, and how help shows it.
struct KeyDetails {
  std::string unit{};  ///< e.g. "tokens"; shown in help
  double min = -std::numeric_limits<double>::infinity(),
         max = std::numeric_limits<double>::infinity();  ///< of numbers, inclusive
  std::vector<std::string> choices{};                    ///< of text: the only values allowed; empty = any
};

struct Setting;

/// The keys of one command, their values, and where each value came from. Values come from, strongest first: flags
/// `--section.key=value` or `--section.key value`; the environment, FORESHARD_SECTION__KEY; files given by `--config
/// FILE.ini` (repeatable, later wins); the user's file $XDG_CONFIG_HOME/foreshard/config.ini (default ~/.config);
/// defaults.
///
/// A key without a section is a plain option of the command line, e.g. `--json`: files and environment cannot set it,
/// and it is not part of the resolved configuration. `--help`, `-h`, `--version` and `--config` are built in. Booleans
/// may stand alone
/// (`--json` is `--json=true`). Prints nothing, exits never.
///
///   Config config("foreshard-train", "Trains a GPT with fully sharded data parallelism.");
///   config.example("mpirun -n 2 foreshard-train --data.path 'data/devil_train*.bin'");
///   config.add("train.steps", 100, "optimizer steps", {.min = 1});
///   config.parse(argc, argv);
///   config.get<int>("train.steps");
class Config {
 public:
  explicit Config(std::string program, std::string summary = "");

  /// A line for the top of --help.
  void example(std::string command_line);

  /// Declares a key with its default. Its type is that of `value`: bool, integer, floating point, or text.
  template <class T>
  void add(std::string key, const T& value, std::string description, KeyDetails details = {}) {
    if constexpr (std::same_as<T, bool>) {
      add_key(Kind::boolean, std::move(key), value ? "true" : "false", std::move(description), std::move(details));
    } else if constexpr (std::integral<T>) {
      add_key(Kind::integer, std::move(key), std::to_string(value), std::move(description), std::move(details));
    } else if constexpr (std::floating_point<T>) {
      add_key(Kind::real, std::move(key), number_text(value), std::move(description), std::move(details));
    } else {
      add_key(Kind::text, std::move(key), std::string(value), std::move(description), std::move(details));
    }
  }

  /// Lets the command take `min` to `max` arguments without a name; without this it takes none.
  void add_arguments(std::string name, std::string description, int min, int max);

  /// Declares keys of other commands, or whole sections of them ("data."). Files and environment, which commands share,
  /// may set them; they are ignored here.
  void ignore(std::initializer_list<std::string_view> keys);

  /// Reads all sources. Throws one InputError(usage) that lists every problem found: unknown keys (with source and
  /// nearest name), values of the wrong type or out of range, unreadable files, malformed lines. Nothing is thrown if
  /// help or version is asked for.
  void parse(int argc, const char* const* argv);

  bool help_wanted() const { return help_wanted_; }
  bool version_wanted() const { return version_wanted_; }

  /// Value of a declared key, as the type it was declared with (integers may be read as int or int64_t).
  template <class T>
  T get(std::string_view key) const {
    if constexpr (std::same_as<T, bool>) {
      return boolean(key);
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(integer(key, lowest<T>(), highest<T>()));
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(real(key));
    } else {
      return T(text(key));
    }
  }
  bool has(std::string_view key) const { return keys_.contains(key); }  ///< declared
  const std::vector<std::string>& arguments() const { return arguments_; }

  /// "default", "flag", "environment FORESHARD_TRAIN__STEPS" or "job.ini:3".
  const std::string& origin(std::string_view key) const;
  bool is_default(std::string_view key) const { return origin(key) == "default"; }
  /// "override: train.steps = 10 (from flag)", one for each sectioned key that is not at its default.
  std::vector<std::string> overrides() const;

  /// All sectioned keys as an INI file that, given as --config, runs the same again; each with its origin as a comment.
  std::string resolved_ini() const;
  /// All sectioned keys as {"section": {"key": value}}, typed.
  nlohmann::json to_json() const;

  /// The text of --help: usage, examples, then options by section, with default, unit and environment name.
  std::string help() const;
  const std::string& program() const { return program_; }

 private:
  template <class T>
  static constexpr std::int64_t lowest() {
    return static_cast<std::int64_t>(std::numeric_limits<T>::min());
  }
  template <class T>
  static constexpr std::int64_t highest() {
    constexpr std::uint64_t bound = std::numeric_limits<T>::max();
    return static_cast<std::int64_t>(bound > INT64_MAX ? INT64_MAX : bound);
  }

  enum class Kind { boolean, integer, real, text };
  struct Key {
    Kind kind = Kind::text;
    std::string initial, value, description, origin;
    KeyDetails details;
  };
  struct Arguments {
    std::string name, description;
    int min = 0, max = 0;
  };

  void add_key(Kind kind, std::string key, std::string value, std::string description, KeyDetails details);
  static std::string number_text(double value);
  static std::string fault_of(const Key& key, std::string_view value);
  const Key& find(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  double real(std::string_view key) const;
  const std::string& text(std::string_view key) const { return find(key).value; }

  void apply(const Setting& setting, bool shared);
  void set(Key& key, const Setting& setting);
  void take_built_in(std::vector<Setting>& flags);
  bool ignores(std::string_view key) const;
  std::string suggestion(const Setting& setting) const;
  void check_argument_count();
  std::vector<std::string> sections() const;
  std::vector<std::string> keys_of(std::string_view section) const;
  std::string help_of(const std::string& name) const;

  std::string program_, summary_;
  std::vector<std::string> examples_, arguments_, files_, ignored_, problems_;
  Arguments argument_rule_;
  std::map<std::string, Key, std::less<>> keys_;
  std::vector<std::string> order_;  ///< keys as declared
  bool help_wanted_ = false, version_wanted_ = false;
};

}  // namespace foreshard
