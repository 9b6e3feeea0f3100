#include "base/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/text.hpp"

namespace foreshard {

namespace {

/// Three significant digits of a number below 1024.
std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string scaled(double value, double base, double at_most, std::string_view plain, std::string_view prefixes,
                   std::string_view suffix) {
  if (value < at_most) return fmt::format("{:.0f} {}", value, plain);
  std::size_t i = 0;
  for (value /= base; value >= at_most && i + 1 < prefixes.size(); ++i) value /= base;
  return fmt::format("{} {}{}", three_digits(value), prefixes[i], suffix);
}

std::string clock_text(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  const auto minutes = std::llround(seconds / 60);
  if (minutes < 48 * 60) return fmt::format("{}h{:02}m", minutes / 60, minutes % 60);
  const auto hours = std::llround(seconds / 3600);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
}

struct SizeUnit {
  std::string_view name;
  double bytes;
};
constexpr std::array<SizeUnit, 14> size_units{{{"", 1},
                                               {"B", 1},
                                               {"K", 0x1p10},
                                               {"M", 0x1p20},
                                               {"G", 0x1p30},
                                               {"T", 0x1p40},
                                               {"KiB", 0x1p10},
                                               {"MiB", 0x1p20},
                                               {"GiB", 0x1p30},
                                               {"TiB", 0x1p40},
                                               {"kB", 1e3},
                                               {"MB", 1e6},
                                               {"GB", 1e9},
                                               {"TB", 1e12}}};

bool same_unit(std::string_view a, std::string_view b) {
  return a == b ||
         (a.size() == b.size() && !a.empty() && std::toupper(a[0]) == std::toupper(b[0]) && a.substr(1) == b.substr(1));
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "") + scaled(std::abs(static_cast<double>(bytes)), 1024, 1023.5, "B", "KMGTPE", "iB");
}

std::string rate_text(double bytes_per_second) { return scaled(bytes_per_second, 1000, 999.5, "B/s", "kMGTPE", "B/s"); }

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "n/a";
  if (seconds < 0) return "-" + duration_text(-seconds);
  if (seconds < 999.5e-9) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 999.95e-6) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 0.99995) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  return clock_text(seconds);
}

std::string count_text(std::int64_t count) {
  std::string text = std::to_string(count);
  const std::size_t sign = count < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::optional<std::int64_t> parse_size(std::string_view text) {
  text = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || number < 0) return std::nullopt;
  const std::string_view name = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const SizeUnit& unit : size_units) {
    if (!same_unit(unit.name, name)) continue;
    const double bytes = std::round(number * unit.bytes);
    if (bytes >= 0x1p63) return std::nullopt;
    return static_cast<std::int64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace foreshard
