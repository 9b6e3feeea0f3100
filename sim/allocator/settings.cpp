#include "sim/allocator/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace foreshard::sim::allocator {
namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view seen, std::string_view expected) {
  throw InputError(ExitCode::usage, fmt::format("allocator setting {}: {} is not {}\n  as in PYTORCH_CUDA_ALLOC_CONF",
                                                key, seen.empty() ? "nothing" : seen, expected));
}

/// The text cut at , : [ ] which are tokens too; spaces are dropped.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens(1);
  for (const char letter : text) {
    if (letter == ' ') continue;
    if (std::string_view(",:[]").find(letter) == std::string_view::npos) {
      tokens.back() += letter;
      continue;
    }
    if (!tokens.back().empty()) tokens.emplace_back();
    tokens.back() = letter;
    tokens.emplace_back();
  }
  if (tokens.back().empty()) tokens.pop_back();
  return tokens;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : tokens_(tokens_of(text)) {}

  Settings read() {
    while (!done()) {
      option(next());
      if (!done()) expect(",");
    }
    return settings_;
  }

 private:
  bool done() const { return at_ == tokens_.size(); }
  std::string peek() const { return done() ? "" : tokens_[at_]; }
  std::string next() { return done() ? "" : tokens_[at_++]; }
  void expect(std::string_view token) {
    if (const std::string seen = next(); seen != token) refuse(key_, seen, fmt::format("the expected \"{}\"", token));
  }

  template <typename Number>
  Number number(std::string_view expected) {
    const std::string seen = next();
    Number value{};
    const auto [end, error] = std::from_chars(seen.data(), seen.data() + seen.size(), value);
    if (error != std::errc{} || end != seen.data() + seen.size()) refuse(key_, seen, expected);
    return value;
  }
  Bytes mebibytes(Bytes least) {
    const auto value = number<Bytes>("a number of MiB");
    if (value < least || value >= Settings::unlimited / mib)
      refuse(key_, std::to_string(value), fmt::format("at least {} MiB", least));
    return value * mib;
  }
  double fraction(bool whole) {
    const auto value = number<double>("a number");
    if (!(value > 0) || value > 1 || (value == 1 && !whole))
      refuse(key_, fmt::format("{}", value), whole ? "in (0, 1]" : "in (0, 1)");
    return value;
  }
  bool boolean() {
    const std::string seen = next();
    if (seen != "True" && seen != "False") refuse(key_, seen, "True or False");
    return seen == "True";
  }
  int divisions() {
    const auto value = number<int>("a number of divisions");
    if (value < 0 || (value > 0 && !std::has_single_bit(static_cast<unsigned>(value))))
      refuse(key_, std::to_string(value), "0 or a power of two");
    return value;
  }

  void option(const std::string& key) {
    key_ = key;
    expect(":");
    if (key == "max_split_size_mb")
      settings_.max_split_bytes = mebibytes(20);
    else if (key == "max_non_split_rounding_mb")
      settings_.max_unsplit_excess_bytes = mebibytes(20);
    else if (key == "large_segment_size_mb")
      settings_.large_segment_bytes = mebibytes(11);
    else if (key == "expandable_segments")
      settings_.expandable_segments = boolean();
    else if (key == "garbage_collection_threshold")
      settings_.garbage_collection_threshold = fraction(false);
    else if (key == "per_process_memory_fraction")
      settings_.memory_fraction = fraction(true);
    else if (key == "roundup_power2_divisions")
      roundup();
    else if (key == "backend")
      backend();
    else
      without_effect();
  }
  void backend() {
    if (const std::string seen = next(); seen != "native") refuse(key_, seen, "native, the only one that is modelled");
  }
  void without_effect() {
    if (!key_.starts_with("release_lock_on_") && !key_.starts_with("pinned_") && !key_.starts_with("graph_capture_"))
      refuse(key_, key_, "a known option");
    next();
  }

  void roundup() {
    if (peek() != "[") return settings_.divisions.fill(divisions());
    next();
    for (std::size_t last = 0, seen = 0; peek() != "]"; ++seen) {
      if (seen > 0) expect(",");
      last = interval(last, seen == 0);
    }
    next();
  }
  /// "512:4" or ">:1": the first one holds for all smaller sizes too, ">" for all above the last.
  std::size_t interval(std::size_t last, bool first) {
    const bool above = peek() == ">";
    const auto start = above ? (next(), std::uint64_t{0}) : number<std::uint64_t>("an interval's first MiB");
    if (!above && !std::has_single_bit(start)) refuse(key_, std::to_string(start), "a power of two");
    expect(":");
    const int value = divisions();
    auto& all = settings_.divisions;
    if (above) return std::fill(all.begin() + static_cast<std::ptrdiff_t>(last) + 1, all.end(), value), last;
    const std::size_t index = std::min<std::size_t>(std::bit_width(start) - 1, all.size() - 1);
    if (first) std::fill_n(all.begin(), index, value);
    all[index] = value;
    return index;
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  std::string key_;
  Settings settings_;
};

}  // namespace

Settings parse_settings(std::string_view text) {
  const Settings settings = Reader(text).read();
  if (settings.max_split_bytes < settings.large_segment_bytes)
    refuse("max_split_size_mb", std::to_string(settings.max_split_bytes / mib), "at least large_segment_size_mb");
  return settings;
}

}  // namespace foreshard::sim::allocator
