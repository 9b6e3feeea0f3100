#include "sim/allocator/event_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sim/validation/csv_table.hpp"

namespace foreshard::sim::allocator {
namespace {

constexpr std::int64_t largest_bytes = std::int64_t{1} << 50;  ///< sums of sizes stay within 64 bits
constexpr std::array<std::string_view, 7> kind_names{"allocate",    "free",    "record_stream", "sync",
                                                     "empty_cache", "outside", "phase"};

class Reader {
 public:
  explicit Reader(const std::string& path) : table_(validation::read_csv(path)) {}

  EventList read() {
    table_.column("event"), table_.column("block"), table_.column("bytes"), table_.column("stream");
    for (row_ = 0; row_ < table_.rows.size(); ++row_) list_.events.push_back(event());
    return std::move(list_);
  }

 private:
  Event event() {
    Event event;
    event.kind = Event::Kind(named("event", kind_names));
    event.stream = static_cast<Stream>(number("stream", 0));
    event.bytes = number("bytes", 0);
    event.at = number("time_ns", static_cast<std::int64_t>(row_) * 1000);
    event.until = number("until_ns", event.kind == Event::Kind::record_stream ? not_known : 0);
    if (event.kind == Event::Kind::phase) return event.block = phase(), event;
    event.label = label_of(MemoryClass(text("class").empty() ? 0 : named("class", memory_class_names)),
                           static_cast<int>(number("unit", no_unit)));
    if (event.kind <= Event::Kind::record_stream) event.block = block(event.kind);
    return event;
  }

  std::string text(const std::string& column) const {
    const auto found = std::ranges::find(table_.header, column);
    return found == table_.header.end() ? "" : table_.rows[row_][std::size_t(found - table_.header.begin())];
  }
  [[noreturn]] void refuse(const std::string& column, const std::string& seen, const std::string& expected) const {
    throw InputError(ExitCode::bad_input, fmt::format("{}: row {}: {} is \"{}\"; expected {}", table_.path, row_ + 2,
                                                      column, seen, expected));
  }
  std::int64_t number(const std::string& column, std::int64_t otherwise) const {
    const std::string seen = text(column);
    if (seen.empty()) return otherwise;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(seen.data(), seen.data() + seen.size(), value);
    const bool is_unit = column == "unit";
    if (error != std::errc{} || end != seen.data() + seen.size() || value < (is_unit ? -1 : 0) ||
        (is_unit && value >= 1 << 23) || (column == "stream" && value > 1000) ||
        (column == "bytes" && value > largest_bytes))
      refuse(column, seen,
             is_unit ? "a unit from 0, or -1" : "a whole number that is not negative, and of bytes at most 2^50");
    return value;
  }
  std::size_t named(const std::string& column, std::span<const std::string_view> names) const {
    const std::string seen = text(column);
    const auto found = std::ranges::find(names, seen);
    if (found == names.end())
      refuse(column, seen, fmt::format("one of {}{}", fmt::join(names, ", "), did_you_mean(seen, names)));
    return std::size_t(found - names.begin());
  }
  std::uint32_t phase() {
    list_.phases.push_back(text("class"));
    return static_cast<std::uint32_t>(list_.phases.size() - 1);
  }
  std::uint32_t block(Event::Kind kind) {
    const std::string name = text("block");
    if (kind == Event::Kind::allocate) {
      if (!live_.emplace(name, made_).second) refuse("block", name, "a block that is not allocated already");
      return made_++;
    }
    const auto found = live_.find(name);
    if (found == live_.end()) refuse("block", name, "a block that an earlier row allocates, and none has freed");
    const std::uint32_t number = found->second;
    if (kind == Event::Kind::free) live_.erase(found);
    return number;
  }

  validation::CsvTable table_;
  EventList list_;
  std::size_t row_ = 0;
  std::uint32_t made_ = 0;
  std::unordered_map<std::string, std::uint32_t> live_;
};

}  // namespace

EventList read_events(const std::string& path) { return Reader(path).read(); }

std::string text_of(Label label) {
  const std::string_view name = memory_class_names[std::size_t(class_of(label))];
  return unit_of(label) == no_unit ? std::string(name) : fmt::format("{} of unit {}", name, unit_of(label));
}

}  // namespace foreshard::sim::allocator
