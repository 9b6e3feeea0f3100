#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine.hpp"

namespace foreshard::sim {

/// A JSON file of sim/machines, part of the library: "gpus/h100-sxm" and its text.
struct EmbeddedFile {
  std::string_view name, text;
};
std::span<const EmbeddedFile> embedded_files();

/// Names of a folder of the catalogue ("gpus", "clusters", "fabrics"), sorted.
std::vector<std::string> catalogue_names(std::string_view folder);

/// One file that describes hardware. Every reading throws InputError (bad_input) which names the file, the key, the
/// value seen and what was expected.
class HardwareFile {
 public:
  /// `name` is one of the catalogue's folder, or the path of a file that ends in ".json". An unknown name is refused
  /// with the nearest one.
  static HardwareFile open(std::string_view folder, const std::string& name);

  std::string text(const char* key) const;
  /// {"value", "source"} with a value of at least `least`.
  Quantity quantity(const char* key, double least = 0) const;
  /// The same for a whole number.
  int count(const char* key, int least = 1) const;

 private:
  HardwareFile(nlohmann::json json, std::string origin) : json_(std::move(json)), origin_(std::move(origin)) {}
  static HardwareFile parse(std::string_view text, const std::string& origin);
  const nlohmann::json& at(const char* key) const;
  [[noreturn]] void fail(const char* key, const nlohmann::json& seen, const std::string& expected) const;

  nlohmann::json json_;
  std::string origin_;
};

}  // namespace foreshard::sim
