#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace foreshard {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool alike(char a, char b) { return lower(a) == lower(b) || (a == '-' && b == '_') || (a == '_' && b == '-'); }

/// Optimal string alignment distance, three rows of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (alike(a[i - 1], b[j - 1]) ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::size_t tolerance(std::string_view a, std::string_view b) {
  return std::max<std::size_t>(1, std::max(a.size(), b.size()) / 3);
}

template <class Name>
std::string nearest_of(std::string_view word, std::span<const Name> names) {
  std::string best;
  std::size_t best_distance = std::string::npos;
  for (const std::string_view name : names) {
    const std::size_t least = std::max(word.size(), name.size()) - std::min(word.size(), name.size());
    if (least > tolerance(word, name)) continue;
    const std::size_t distance = edit_distance(word, name);
    if (distance > tolerance(word, name) || distance >= best_distance) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

unsigned byte_at(std::string_view text, std::size_t index) { return static_cast<unsigned char>(text[index]); }

bool continues(std::string_view text, std::size_t index) {
  return index < text.size() && (byte_at(text, index) & 0xC0U) == 0x80;
}

/// Bytes of the character that begins with `lead`; 0 if none does.
std::size_t bytes_of_character(unsigned lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

/// The second byte rules out what is longer than need be, surrogates, and what is above U+10FFFF.
bool is_second_byte(unsigned lead, unsigned second) {
  if (lead == 0xE0) return second >= 0xA0;
  if (lead == 0xED) return second < 0xA0;
  if (lead == 0xF0) return second >= 0x90;
  return lead != 0xF4 || second < 0x90;
}

/// Bytes of the character at `at`; 0 if there is none.
std::size_t character_at(std::string_view text, std::size_t at) {
  const std::size_t size = bytes_of_character(byte_at(text, at));
  for (std::size_t i = 1; i < size; ++i)
    if (!continues(text, at + i)) return 0;
  return size > 1 && !is_second_byte(byte_at(text, at), byte_at(text, at + 1)) ? 0 : size;
}

template <class Name>
std::string question(std::string_view word, std::span<const Name> names) {
  const std::string name = nearest_of(word, names);
  return name.empty() ? "" : fmt::format(" Did you mean `{}`?", name);
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string_view> names) { return nearest_of(word, names); }
std::string nearest(std::string_view word, std::span<const std::string> names) { return nearest_of(word, names); }
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  return question(word, names);
}
std::string did_you_mean(std::string_view word, std::span<const std::string> names) { return question(word, names); }

std::string numbered(std::string_view heading, std::span<const std::string> problems) {
  if (problems.size() == 1) return problems.front();
  std::string text(heading);
  for (std::size_t i = 0; i < problems.size(); ++i) text += fmt::format("\n{:3}. {}", i + 1, problems[i]);
  return text;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && continues(text, most)) --most;
  return std::string(text.substr(0, most)) + "…";
}

std::size_t utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size())
    if (const std::size_t size = character_at(text, at); size > 0)
      at += size;
    else
      break;
  return at;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace foreshard
