#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "sim/machine.hpp"
#include "sim/machine_gpu_json.hpp"
#include "sim/machine_node.hpp"

namespace foreshard::sim {
namespace {

using Json = nlohmann::ordered_json;
using Node = MachineNode;

/// Files of GPUs have the second one, so that programs which know only the first refuse them.
constexpr int schema = 1, schema_of_gpus = 2;

struct Column {
  const char* name;
  std::int64_t Sizes::*member;
};
constexpr std::array columns{Column{"rows", &Sizes::rows},   Column{"cols", &Sizes::cols},
                             Column{"inner", &Sizes::inner}, Column{"batch", &Sizes::batch},
                             Column{"seq", &Sizes::seq},     Column{"heads", &Sizes::heads}};

struct NamedQuantity {
  const char* name;
  Quantity Machine::*member;
};
constexpr std::array quantities{NamedQuantity{"kernel_floor_s", &Machine::kernel_floor_s},
                                NamedQuantity{"handover_next_s", &Machine::handover_next_s},
                                NamedQuantity{"handover_alone_s", &Machine::handover_alone_s},
                                NamedQuantity{"handover_wake_s", &Machine::handover_wake_s},
                                NamedQuantity{"team_efficiency", &Machine::team_efficiency},
                                NamedQuantity{"process_base_bytes", &Machine::process_base_bytes},
                                NamedQuantity{"process_shared_bytes", &Machine::process_shared_bytes},
                                NamedQuantity{"network_latency_s", &Machine::network_latency_s},
                                NamedQuantity{"network_bytes_per_s", &Machine::network_bytes_per_s},
                                NamedQuantity{"network_core_s_per_byte", &Machine::network_core_s_per_byte},
                                NamedQuantity{"network_beside_compute", &Machine::network_beside_compute}};

OpKind kind_of(const Node& node) {
  if (const auto kind = model::find_op_kind(node.text())) return *kind;
  node.fail("the name of an op, such as 'linear' or 'all_gather'");
}

DType dtype_of(const Node& node) {
  const std::string name = node.text();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
    if (name_of(dtype) == name) return dtype;
  node.fail("one of f32, f64, bf16, f16");
}

const Column& column_of(const Node& node) {
  const std::string name = node.text();
  for (const Column& column : columns)
    if (name == column.name) return column;
  node.fail("one of rows, cols, inner, batch, seq, heads");
}

KernelPoint read_point(const Node& node, const std::vector<Node>& names) {
  const auto values = node.items();
  if (values.size() != names.size() || values.empty()) node.fail("one number for each of the columns");
  KernelPoint point;
  for (std::size_t i = 0; i + 1 < values.size(); ++i)
    point.sizes.*column_of(names[i]).member = static_cast<std::int64_t>(values[i].number(0));
  point.seconds = values.back().positive();
  return point;
}

KernelTable read_kernel(const Node& node) {
  KernelTable table{kind_of(node.at("kind")),      node.at("accumulate").flag(),
                    node.at("busy_cores").count(), {},
                    node.at("source").text(),      node.has("dtype") ? dtype_of(node.at("dtype")) : DType::f32};
  const Node columns_node = node.at("columns"), points = node.at("points");
  const auto names = columns_node.items();
  for (const Node& point : points.items()) table.points.push_back(read_point(point, names));
  if (table.points.empty()) points.fail("at least one point");
  return table;
}

CollectivePoint read_collective_point(const Node& node) {
  const auto values = node.items();
  if (values.size() != 2) node.fail("two numbers: bytes and seconds");
  return {values[0].positive(), values[1].positive()};
}

CollectiveTable read_collective(const Node& node) {
  CollectiveTable table{kind_of(node.at("kind")), node.at("ranks").count(), {}, node.at("source").text()};
  if (node.has("nodes")) table.nodes = node.at("nodes").count();
  if (table.ranks % table.nodes != 0) node.at("nodes").fail(fmt::format("a divisor of the {} ranks", table.ranks));
  const Node points = node.at("points");
  for (const Node& point : points.items()) table.points.push_back(read_collective_point(point));
  const auto later = [](const CollectivePoint& a, const CollectivePoint& b) { return a.bytes >= b.bytes; };
  if (table.points.empty() || std::adjacent_find(table.points.begin(), table.points.end(), later) != table.points.end())
    points.fail("at least one point, bytes increasing");
  return table;
}

/// Adds to `tables` those of `others` whose kind has none.
template <class Table>
void complete(std::vector<Table>& tables, const std::vector<Table>& others) {
  const std::size_t known = tables.size();
  for (const Table& other : others)
    if (std::none_of(tables.begin(), tables.begin() + static_cast<std::ptrdiff_t>(known),
                     [&](const Table& table) { return table.kind == other.kind; }))
      tables.push_back(other);
}

Machine read(const Node& root) {
  if (const int version = root.at("schema").count(); version != schema && version != schema_of_gpus)
    root.at("schema").fail(fmt::format("{} or {}", schema, schema_of_gpus));
  Machine machine = generic_machine(root.at("cores").count());
  machine.name = root.at("name").text();
  machine.date = root.at("date").text();
  const auto kernels = std::move(machine.kernels);
  const auto collectives = std::move(machine.collectives);
  machine.kernels.clear(), machine.collectives.clear();
  const Node kernel_list = root.at("kernels"), collective_list = root.at("collectives");
  for (const Node& node : kernel_list.items()) machine.kernels.push_back(read_kernel(node));
  for (const Node& node : collective_list.items()) machine.collectives.push_back(read_collective(node));
  for (const auto& [name, member] : quantities)
    if (root.has(name)) machine.*member = root.at(name).quantity();
  machine.gpu = read_gpu(root);
  if (machine.gpu) return machine;
  complete(machine.kernels, kernels);
  complete(machine.collectives, collectives);
  return machine;
}

std::vector<Column> columns_in_use(const KernelTable& table) {
  std::vector<Column> used;
  for (const Column& column : columns)
    if (std::any_of(table.points.begin(), table.points.end(),
                    [&](auto& point) { return point.sizes.*column.member != 0; }))
      used.push_back(column);
  return used;
}

Json json_of(const KernelTable& table) {
  Json json{{"kind", model::name_of(table.kind)}, {"accumulate", table.accumulate},
            {"busy_cores", table.busy_cores},     {"source", table.source},
            {"columns", Json::array()},           {"points", Json::array()}};
  if (table.dtype != DType::f32) json["dtype"] = name_of(table.dtype);
  const auto used = columns_in_use(table);
  for (const Column& column : used) json["columns"].push_back(column.name);
  json["columns"].push_back("seconds");
  for (const KernelPoint& point : table.points) {
    Json row = Json::array();
    for (const Column& column : used) row.push_back(point.sizes.*column.member);
    row.push_back(rounded(point.seconds));
    json["points"].push_back(row);
  }
  return json;
}

Json json_of(const CollectiveTable& table) {
  Json json{{"kind", model::name_of(table.kind)},
            {"ranks", table.ranks},
            {"source", table.source},
            {"columns", {"bytes", "seconds"}},
            {"points", Json::array()}};
  if (table.nodes > 1) json["nodes"] = table.nodes;
  for (const CollectivePoint& point : table.points) json["points"].push_back({point.bytes, rounded(point.seconds)});
  return json;
}

}  // namespace

Machine parse_machine(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw InputError(
        ExitCode::bad_input,
        fmt::format("machine file {}: not JSON, or cut short; write a new file with foreshard-calibrate", path));
  return read(Node(json, path, ""));
}

Machine read_machine(const std::string& path) {
  return parse_machine(read_whole({path, "machine file", "write one with foreshard-calibrate --out machine.json"}),
                       path);
}

std::string to_json(const Machine& machine) {
  Json json{{"schema", machine.gpu ? schema_of_gpus : schema},
            {"name", machine.name},
            {"date", machine.date},
            {"cores", machine.cores}};
  if (machine.gpu) json.update(json_of(*machine.gpu));
  for (const auto& [name, member] : quantities)
    if (!machine.gpu) json[name] = json_of(machine.*member);
  json["kernels"] = Json::array(), json["collectives"] = Json::array();
  for (const KernelTable& table : machine.kernels) json["kernels"].push_back(json_of(table));
  for (const CollectiveTable& table : machine.collectives) json["collectives"].push_back(json_of(table));
  return json.dump(1) + "\n";
}

}  // namespace foreshard::sim
