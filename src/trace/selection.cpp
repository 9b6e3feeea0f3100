#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "trace/export.hpp"

namespace foreshard::trace {
namespace {

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

template <class T>
struct Range {
  T first, last;
};

/// "a", "a:b", ":b", "a:"; the open ends are those of `all`.
template <class T>
std::optional<Range<T>> range(std::string_view text, Range<T> all) {
  const std::size_t colon = text.find(':');
  const std::string_view left = text.substr(0, colon);
  const std::string_view right = colon == text.npos ? left : text.substr(colon + 1);
  if (text.empty() || text == ":") return {};
  const auto first = left.empty() ? all.first : number<T>(left);
  const auto last = right.empty() ? all.last : number<T>(right);
  if (!first || !last || *first > *last) return {};
  return Range<T>{*first, *last};
}

}  // namespace

bool Selection::has_rank(std::uint32_t rank) const {
  return ranks.empty() || std::ranges::any_of(ranks, [rank](RankRange r) { return rank >= r.first && rank <= r.last; });
}

void select_steps(Selection& selection, const std::string& text) {
  constexpr std::int32_t lowest = std::numeric_limits<std::int32_t>::min(),
                         highest = std::numeric_limits<std::int32_t>::max();
  const auto steps = range<std::int32_t>(text, {lowest, highest});
  if (!steps)
    throw InputError(ExitCode::usage,
                     fmt::format("--steps {}: expected a step or a range, e.g. 3, 3:7, 3: or :7", text));
  selection.first_step = steps->first;
  selection.last_step = steps->last;
}

void select_ranks(Selection& selection, const std::string& text) {
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const auto ranks = range<std::uint32_t>(rest.substr(0, comma), {0, UINT32_MAX});
    if (!ranks) throw InputError(ExitCode::usage, fmt::format("--ranks {}: expected ranks, e.g. 0, 0,3 or 0:3", text));
    selection.ranks.push_back({ranks->first, ranks->last});
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
  }
}

}  // namespace foreshard::trace
