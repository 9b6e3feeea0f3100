#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace foreshard::sim::validation {

/// A CSV file (RFC 4180) with a header line.
struct CsvTable {
  std::string path;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< each as long as the header

  /// Index of a column. Throws InputError(bad_input) that names the file, the column and the nearest one there is.
  std::size_t column(const std::string& name) const;
};

/// Throws InputError(bad_input) that names the file, the row where one is not as long as the header, and the line where
/// the file is not UTF-8.
CsvTable read_csv(const std::string& path);

/// Overwrites `path`; every field is quoted. Throws InputError(bad_input) if it cannot be written.
void write_csv(const std::string& path, const CsvTable& table);

}  // namespace foreshard::sim::validation
