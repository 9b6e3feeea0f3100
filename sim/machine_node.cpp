#include "sim/machine_node.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace foreshard::sim {
namespace {

constexpr double most = 1e18;  ///< what is counted fits 64 bits

}  // namespace

void MachineNode::fail(const std::string& expected) const {
  std::string seen = json_.dump();
  if (seen.size() > 60) seen = seen.substr(0, 57) + "...";
  throw InputError(ExitCode::bad_input,
                   fmt::format("machine file {}: {} is {}, expected {}; write a new file with foreshard-calibrate",
                               file_, key_.empty() ? "the file" : "'" + key_ + "'", seen, expected));
}

MachineNode MachineNode::at(const char* name) const {
  if (!json_.is_object()) fail("an object");
  if (!json_.contains(name)) fail(fmt::format("the key '{}' in it", name));
  return {json_.at(name), file_, key_.empty() ? name : key_ + "." + name};
}

std::vector<MachineNode> MachineNode::items() const {
  if (!json_.is_array()) fail("an array");
  std::vector<MachineNode> all;
  for (std::size_t i = 0; i < json_.size(); ++i) all.emplace_back(json_[i], file_, fmt::format("{}[{}]", key_, i));
  return all;
}

double MachineNode::number(double least) const {
  const double value = json_.is_number() ? json_.get<double>() : -1;
  if (!(value >= least && value <= most)) fail(fmt::format("a number from {} to {:g}", least, most));
  return value;
}

double MachineNode::positive() const {
  const double value = json_.is_number() ? json_.get<double>() : -1;
  if (!(value > 0 && value <= most)) fail(fmt::format("a number above 0, and at most {:g}", most));
  return value;
}

int MachineNode::count() const {
  if (!json_.is_number_integer() || json_.get<std::int64_t>() < 1 || json_.get<std::int64_t>() > 1 << 30)
    fail("a whole number of at least 1");
  return json_.get<int>();
}

bool MachineNode::flag() const { return json_.is_boolean() ? json_.get<bool>() : (fail("true or false"), false); }
std::string MachineNode::text() const { return json_.is_string() ? json_.get<std::string>() : (fail("a string"), ""); }

Quantity MachineNode::quantity() const { return {at("value").number(0), at("source").text()}; }

double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

nlohmann::ordered_json json_of(const Quantity& quantity) {
  return {{"value", rounded(quantity.value)}, {"source", quantity.source}};
}

}  // namespace foreshard::sim
