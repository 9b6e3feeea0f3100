#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard::sim::planner {

/// What one word of a list means, or nothing.
template <class T>
using ReadWord = std::function<std::optional<T>(std::string_view)>;

/// Reads lists, and collects what cannot be read.
class Lists {
 public:
  explicit Lists(const Config& config) : config_(config) {}

  /// The values of `key`: its list; or `own`, if the user set one of the plan's keys `own_keys`; or else `usual`.
  template <class T>
  std::vector<T> of(const std::string& key, std::initializer_list<std::string_view> own_keys, T own,
                    std::vector<T> usual, const ReadWord<T>& read) {
    const auto list = config_.get<std::string>(key);
    if (list != "auto") return values<T>(key, list, read);
    const bool decided = std::ranges::any_of(own_keys, [&](auto name) { return !config_.is_default(name); });
    return decided ? std::vector<T>{own} : usual;
  }

  /// Keys that the user set to what a search cannot say.
  void refuse(std::string_view key, bool when, std::string_view instead) {
    if (when) problems_.push_back(fmt::format("{} = {}: {}", key, config_.get<std::string>(key), instead));
  }

  bool is_given(std::string_view key) const { return config_.get<std::string>(key) != "auto"; }

  void expect_all_read() const {
    if (!problems_.empty())
      throw InputError(ExitCode::usage,
                       numbered(fmt::format("{} values cannot be searched:", problems_.size()), problems_));
  }

 private:
  template <class T>
  std::vector<T> values(const std::string& key, const std::string& list, const ReadWord<T>& read) {
    std::vector<T> found;
    for (const std::string_view word : split(list, ',')) {
      const auto value = read(trimmed(word));
      if (value)
        found.push_back(*value);
      else
        problems_.push_back(fmt::format("{} = {}: '{}' is not one of its values; --help has them", key, list, word));
    }
    return found;
  }

  const Config& config_;
  std::vector<std::string> problems_;
};

template <class T>
ReadWord<T> among(std::vector<std::pair<std::string_view, T>> names) {
  return [names = std::move(names)](std::string_view word) -> std::optional<T> {
    const auto found = std::ranges::find(names, word, &std::pair<std::string_view, T>::first);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
}

/// An integer of at least `least`; the word `other`, if there is one, means `means`.
template <class T>
ReadWord<T> number_from(T least, std::string_view other = "", T means = 0) {
  return [=](std::string_view word) -> std::optional<T> {
    if (!other.empty() && word == other) return means;
    T value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() && value >= least ? std::optional(value)
                                                                                      : std::nullopt;
  };
}

}  // namespace foreshard::sim::planner
