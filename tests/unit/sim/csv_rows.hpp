#pragma once
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace foreshard::sim::test {

using CsvRow = std::map<std::string, std::string>;

/// Fields of a line; a quoted one may hold commas.
inline std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

/// Rows of tests/data/`name`, by the names in its first line.
inline std::vector<CsvRow> csv_rows(const std::string& name) {
  std::ifstream file(std::string(FORESHARD_TEST_DATA "/") + name);
  std::string line;
  std::getline(file, line);
  const auto names = csv_fields(line);
  std::vector<CsvRow> rows;
  while (std::getline(file, line)) {
    const auto fields = csv_fields(line);
    CsvRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size() && i < fields.size(); ++i) row[names[i]] = fields[i];
  }
  return rows;
}

}  // namespace foreshard::sim::test
