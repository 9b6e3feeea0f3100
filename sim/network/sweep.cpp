#include "sim/network/sweep.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::sim::network {
namespace {

double bus_factor(model::OpKind kind, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  return kind == model::OpKind::all_reduce ? 2 * others : others;
}

[[noreturn]] void refuse_sizes(std::string_view text) {
  throw InputError(ExitCode::usage,
                   fmt::format("--bytes = \"{}\" is not a list of sizes\n  expected: sizes with commas "
                               "between them (4K,1.5M,2GB), or FROM:TO, which doubles (8M:4G)",
                               text));
}

double size_of(std::string_view part, std::string_view text) {
  const auto bytes = parse_size(part);
  if (!bytes || *bytes <= 0) refuse_sizes(text);
  return static_cast<double>(*bytes);
}

std::vector<double> doubled(double from, double to) {
  std::vector<double> sizes;
  for (double bytes = from; bytes <= to; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

std::string_view name_of(Algorithm algorithm) {
  constexpr std::array<std::string_view, algorithms.size()> names{"ring", "tree", "nvls", "nvls_tree", "pat"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(Protocol protocol) {
  constexpr std::array<std::string_view, protocols.size()> names{"ll", "ll128", "simple"};
  return names[static_cast<std::size_t>(protocol)];
}

}  // namespace

std::vector<SweepRow> sweep(const Cluster& cluster, model::OpKind kind, const Group& group,
                            std::span<const double> sizes) {
  FORESHARD_EXPECT(group.ranks > 1, "a collective of one rank takes no time");
  std::vector<SweepRow> rows;
  for (const double bytes : sizes) {
    const CollectiveCost cost = collective_time(cluster, {}, kind, bytes, group);
    const double bandwidth = bytes / cost.seconds;
    rows.push_back({bytes, cost, bandwidth, bandwidth * bus_factor(kind, group.ranks)});
  }
  return rows;
}

std::vector<double> parse_sizes(std::string_view text) {
  if (const auto colon = text.find(':'); colon != text.npos) {
    const double from = size_of(text.substr(0, colon), text), to = size_of(text.substr(colon + 1), text);
    if (from > to) refuse_sizes(text);
    return doubled(from, to);
  }
  std::vector<double> sizes;
  for (std::size_t begin = 0, end = 0; end != text.npos; begin = end + 1) {
    end = text.find(',', begin);
    sizes.push_back(size_of(text.substr(begin, end - begin), text));
  }
  return sizes;
}

std::string sweep_text(std::span<const SweepRow> rows) {
  std::string text = fmt::format("{:>14}{:>13}{:>10}{:>10}  {:<10}{:<9}{:>8}\n", "size (B)", "time (us)", "algbw",
                                 "busbw", "algorithm", "protocol", "channels");
  for (const SweepRow& row : rows)
    text += fmt::format("{:>14.0f}{:>13.1f}{:>10.2f}{:>10.2f}  {:<10}{:<9}{:>8}\n", row.bytes, row.cost.seconds * 1e6,
                        row.algorithm_bandwidth / 1e9, row.bus_bandwidth / 1e9, name_of(row.cost.algorithm),
                        name_of(row.cost.protocol), row.cost.channels);
  return text;
}

nlohmann::ordered_json sweep_json(std::span<const SweepRow> rows) {
  auto json = nlohmann::ordered_json::array();
  for (const SweepRow& row : rows)
    json.push_back({{"bytes", static_cast<std::int64_t>(row.bytes)},
                    {"time_s", row.cost.seconds},
                    {"algorithm_bandwidth_bytes_per_s", row.algorithm_bandwidth},
                    {"bus_bandwidth_bytes_per_s", row.bus_bandwidth},
                    {"algorithm", name_of(row.cost.algorithm)},
                    {"protocol", name_of(row.cost.protocol)},
                    {"channels", row.cost.channels}});
  return json;
}

}  // namespace foreshard::sim::network
