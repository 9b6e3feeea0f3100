// The table that nccl-tests prints.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>

#include "base/text.hpp"
#include "sim/network/nccl_tests_rows.hpp"

namespace foreshard::sim::network {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    const auto begin = line.find_first_not_of(" \t\r", at);
    if (begin == line.npos) break;
    const auto end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

/// Without what mpirun --tag-output puts in front: "[1,0]<stdout>:".
std::string_view untagged(std::string_view line) {
  const auto tag = line.find("<stdout>:");
  return line.starts_with('[') && tag != line.npos ? line.substr(tag + 9) : line;
}

std::optional<double> number_in(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

/// Where the header line says that values stand.
struct Columns {
  std::size_t size = 0, count = 0;  ///< `count` of all columns
  std::optional<std::size_t> reduction;
  struct Results {
    std::size_t time = 0, algbw = 0, busbw = 0, wrong = 0;
  };
  std::vector<Results> results;  ///< out of place, in place
};

bool is_time(std::string_view word) { return word == "time" || word == "cputime"; }

std::optional<Columns> columns_in(const Words& words) {
  if (words.empty() || words[0] != "#") return {};
  const Words names(words.begin() + 1, words.end());
  const auto index_of = [&](auto matches, std::size_t from) {
    return std::size_t(std::find_if(names.begin() + std::ptrdiff_t(from), names.end(), matches) - names.begin());
  };
  const auto named = [](std::string_view wanted) { return [=](std::string_view name) { return name == wanted; }; };
  const auto is_wrong = [](std::string_view name) { return name == "#wrong" || name == "error" || name == "wrong"; };
  Columns columns;
  columns.count = names.size();
  columns.size = index_of(named("size"), 0);
  if (const auto at = index_of(named("redop"), 0); at < names.size()) columns.reduction = at;
  for (std::size_t at = index_of(is_time, 0); at < names.size(); at = index_of(is_time, at + 1))
    columns.results.push_back({at, index_of(named("algbw"), at), index_of(named("busbw"), at), index_of(is_wrong, at)});
  if (columns.size == names.size() || columns.results.empty() || columns.results[0].busbw == names.size()) return {};
  return columns;
}

class TextReader {
 public:
  TextReader(std::string_view text, RunBuilder& into) : into_(into) {
    for (const std::string_view line : split(text, '\n')) {
      ++line_;
      read(untagged(line));
    }
  }

 private:
  void read(std::string_view line) {
    const Words words = words_of(line);
    if (words.empty()) return;
    if (const auto columns = columns_in(words))
      columns_ = columns;
    else if (words[0].starts_with('#'))
      comment(line);
    else if (columns_ && number_in(words[0]))
      row(words);
    else
      version(std::string(line));
  }

  void comment(std::string_view line) {
    static const std::regex device(
        R"(#\s+Rank\s+(\d+)(?:\s+Group\s+(\d+))?\s+Pid\s+\d+ on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*?)\s*)");
    std::smatch match;
    const std::string text(line);
    if (std::regex_match(text, match, device))
      into_.device(std::stoi(match[1]), match[2].matched ? std::stoi(match[2]) : 0, match[3], match[4]);
    if (const auto at = text.find("Collective test starting:"); at != text.npos) into_.program(text.substr(at));
    if (const auto at = text.find("nccl-library="); at != text.npos)
      into_.version_code(std::atoi(text.c_str() + at + 13));
    version(text);
  }
  /// "NCCL version 2.18.3+cuda12.2", of NCCL_DEBUG=VERSION and INFO.
  void version(const std::string& text) {
    static const std::regex version(R"(NCCL version (\d+)\.(\d+)\.(\d+))");
    std::smatch match;
    if (text.find("NCCL version") != text.npos && std::regex_search(text, match, version))
      into_.version_code(std::stoi(match[1]) * 10000 + std::stoi(match[2]) * 100 + std::stoi(match[3]));
  }

  /// Rows may lack the columns of out-of-place results (only in place), and have a timestamp of two words at the end.
  void row(const Words& words) {
    const Columns& all = *columns_;
    const std::size_t one = all.results.size() > 1 ? all.results[1].time - all.results[0].time : 0;
    const bool in_place_only = words.size() + one == all.count && one > 0;
    if (words.size() < all.count && !in_place_only)
      into_.refuse(where(), fmt::format("{} values under {} columns", words.size(), all.count));
    const Columns::Results& at = all.results[0];
    const double wrong = at.wrong < words.size() ? number_in(words[at.wrong]).value_or(0) : 0;
    if (wrong > 0) into_.refuse(where(), fmt::format("{} values were wrong; expected a run without errors", wrong));
    into_.row(value(words, all.size), value(words, at.time), value(words, at.algbw), value(words, at.busbw),
              all.reduction ? words[*all.reduction] : "");
  }
  double value(const Words& words, std::size_t at) const {
    if (const auto number = number_in(words[at])) return *number;
    into_.refuse(where(), fmt::format("\"{}\" in column {}; expected a number", words[at], at + 1));
  }
  std::string where() const { return fmt::format("line {}", line_); }

  RunBuilder& into_;
  std::optional<Columns> columns_;
  int line_ = 0;
};

}  // namespace

void read_text(std::string_view text, RunBuilder& into) { TextReader(text, into); }

}  // namespace foreshard::sim::network
