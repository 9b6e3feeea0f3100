#include <fmt/format.h>

#include <cmath>

#include "model/hf_config_families.hpp"

namespace foreshard::model {
namespace {

using hf::Names;

constexpr std::int64_t most = std::int64_t{1} << 50;

std::int64_t read_count(HfConfigFile& file, std::string_view key, std::int64_t least, std::int64_t absent) {
  const Names<1> name{key};
  return file.integer(name, least, most).value_or(absent);
}

/// FLOPs may be written with an exponent.
std::int64_t read_flops(HfConfigFile& file, std::string_view key, std::int64_t absent) {
  const Names<1> name{key};
  const auto given = file.number(name, 0, 1e18);
  return given ? std::llround(*given) : absent;
}

ProfiledUnit read_unit(HfConfigFile& file, const std::string& name) {
  ProfiledUnit unit;
  unit.name = file.text(Names<1>{"name"}).value_or(name);
  unit.parameters = read_count(file, "parameters", 0, 0);
  unit.forward_flops = read_flops(file, "forward_flops", 0);
  unit.backward_flops = read_flops(file, "backward_flops", 2 * unit.forward_flops);
  if (!file.has("backward_flops")) file.assume("backward_flops", fmt::format("2·{}", unit.forward_flops));
  unit.activation_bytes = read_count(file, "activation_bytes", 0, 0);
  unit.output_values = read_count(file, "output_values", 1, 1);
  unit.operators = file.integer(Names<1>{"operators"}, 1, 4096).value_or(1);
  unit.waits = file.boolean(Names<1>{"waits"}).value_or(false);
  for (const char* key : {"parameters", "forward_flops"})
    if (!file.has(key)) file.refuse(key, "a number");
  return unit;
}

void read_units(HfConfigFile& file, ProfileConfig& c) {
  int index = 0;
  for (HfConfigFile& entry : file.array("units")) {
    const std::string place = fmt::format("units[{}]", index++);
    const std::int64_t count = entry.integer(Names<1>{"count"}, 1, 4096).value_or(1);
    const ProfiledUnit unit = read_unit(entry, fmt::format("unit{}", index - 1));
    for (std::int64_t i = 0; i < count; ++i) {
      c.units.push_back(unit);
      if (count > 1) c.units.back().name += fmt::format(".{}", i);
    }
    if (const auto unused = entry.unused(); !unused.empty())
      entry.note(fmt::format("without effect here: {}", fmt::join(unused, ", ")));
    file.take(place, entry);
    if (c.units.size() > 4096) return;
  }
}

}  // namespace

ProfileConfig read_profile(HfConfigFile& file) {
  ProfileConfig c;
  c.name = file.text(Names<1>{"name"}).value_or("profile");
  read_units(file, c);
  if (c.units.empty()) file.refuse("units", "a list of objects with parameters and forward_flops");
  c.head = {.name = "head", .output_values = c.units.empty() ? 1 : c.units.back().output_values};
  if (file.has("root")) {
    HfConfigFile root = file.object("root");
    c.head = read_unit(root, "head");
    file.take("root", root);
  }
  c.tables_bytes = read_count(file, "tables_bytes", 0, 0);
  c.part_of_peak = file.positive(Names<1>{"part_of_peak"}, "part_of_peak", 0.5);
  return c;
}

}  // namespace foreshard::model
