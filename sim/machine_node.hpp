#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/machine.hpp"

namespace foreshard::sim {

/// A value of a machine file and the way to it. Every reading throws InputError (bad_input) which names the file, the
/// key, the value seen and what was expected.
class MachineNode {
 public:
  using Json = nlohmann::ordered_json;
  MachineNode(const Json& json, std::string file, std::string key)
      : json_(json), file_(std::move(file)), key_(std::move(key)) {}

  [[noreturn]] void fail(const std::string& expected) const;
  bool has(const char* name) const { return json_.is_object() && json_.contains(name); }
  MachineNode at(const char* name) const;
  std::vector<MachineNode> items() const;
  double number(double least) const;  ///< at most 1e18
  double positive() const;            ///< the same
  int count() const;                  ///< at least 1
  bool flag() const;
  std::string text() const;
  Quantity quantity() const;  ///< {"value", "source"}, from 0 to 1e18

 private:
  const Json& json_;
  std::string file_, key_;
};

/// As `quantity` reads it back, to five significant digits.
nlohmann::ordered_json json_of(const Quantity& quantity);
double rounded(double value);

}  // namespace foreshard::sim
