#include "sim/validation/csv_table.hpp"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace foreshard::sim::validation {
namespace {

/// What libcsv has seen so far.
struct Reading {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> line;
};

void end_field(void* bytes, std::size_t size, void* reading) {
  static_cast<Reading*>(reading)->line.emplace_back(static_cast<const char*>(bytes), size);
}

void end_line(int, void* reading) {
  auto& r = *static_cast<Reading*>(reading);
  r.lines.push_back(std::move(r.line));
  r.line.clear();
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}", path, what));
}

std::string contents_of(const std::string& path) {
  std::string contents = read_whole({path, "", "expected a CSV file with a header line"});
  if (constexpr std::string_view mark = "\xEF\xBB\xBF"; contents.starts_with(mark)) contents.erase(0, mark.size());
  if (const std::size_t valid = utf8_prefix(contents); valid < contents.size())
    refuse(path, fmt::format("line {}: the byte 0x{:02X} is not UTF-8; expected a CSV file saved as UTF-8",
                             1 + std::ranges::count(contents.substr(0, valid), '\n'),
                             static_cast<unsigned char>(contents[valid])));
  return contents;
}

std::string what_is_wrong(csv_parser& parser) {
  if (csv_error(&parser) != CSV_EPARSE) return csv_strerror(csv_error(&parser));
  return "a quotation mark within a field, or one that is not closed; expected CSV, where a field with quotation marks "
         "is quoted and they are doubled";
}

std::vector<std::vector<std::string>> lines_of(const std::string& text, const std::string& path) {
  csv_parser parser;
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL);
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> guard(&parser, csv_free);
  Reading reading;
  const bool parsed = csv_parse(&parser, text.data(), text.size(), end_field, end_line, &reading) == text.size() &&
                      csv_fini(&parser, end_field, end_line, &reading) == 0;
  if (!parsed) refuse(path, fmt::format("line {}: {}", reading.lines.size() + 1, what_is_wrong(parser)));
  return std::move(reading.lines);
}

void write_line(std::FILE* file, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) std::fputc(',', file);
    csv_fwrite(file, fields[i].data(), fields[i].size());
  }
  std::fputc('\n', file);
}

}  // namespace

std::size_t CsvTable::column(const std::string& name) const {
  const auto found = std::ranges::find(header, name);
  if (found == header.end())
    refuse(path, fmt::format("there is no column '{}'.{}", name, did_you_mean(name, std::span(header))));
  return static_cast<std::size_t>(found - header.begin());
}

CsvTable read_csv(const std::string& path) {
  CsvTable table{.path = path, .rows = lines_of(contents_of(path), path)};
  if (table.rows.empty()) refuse(path, "is empty; expected a header line");
  table.header = std::move(table.rows.front());
  table.rows.erase(table.rows.begin());
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (table.rows[i].size() != table.header.size())
      refuse(path, fmt::format("row {} has {} fields, expected {} as in the header", i + 1, table.rows[i].size(),
                               table.header.size()));
  return table;
}

void write_csv(const std::string& path, const CsvTable& table) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  if (!file) refuse(path, "cannot be written");
  write_line(file.get(), table.header);
  for (const auto& row : table.rows) write_line(file.get(), row);
  if (std::fflush(file.get()) != 0 || std::ferror(file.get())) refuse(path, "could not be written to its end");
}

}  // namespace foreshard::sim::validation
