#include "sim/network/nccl_tests.hpp"

#include <fmt/format.h>

#include "base/input_file.hpp"
#include "sim/network/nccl_tests_rows.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;

constexpr std::array<std::pair<std::string_view, OpKind>, 3> programs{{{"all_gather", OpKind::all_gather},
                                                                       {"reduce_scatter", OpKind::reduce_scatter},
                                                                       {"all_reduce", OpKind::all_reduce}}};

/// Bus bandwidth is algorithm bandwidth times (n - 1) / n, of an all-reduce twice that (doc/PERFORMANCE.md).
std::optional<OpKind> kind_by_ratio(double ratio, int ranks, std::string_view reduction) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (ranks < 2 || ratio <= 0) return {};
  if (std::abs(ratio / (2 * others) - 1) < 0.05) return OpKind::all_reduce;
  if (std::abs(ratio / others - 1) > 0.05) return {};
  return reduction.empty() || reduction == "none" ? OpKind::all_gather : OpKind::reduce_scatter;
}

}  // namespace

void RunBuilder::refuse(const std::string& where, const std::string& what) const {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}{}", run_.path, where.empty() ? "" : where + ": ", what));
}

void RunBuilder::program(std::string_view name) {
  for (const auto& [word, kind] : programs)
    if (name.find(word) != name.npos) run_.kind = kind;
}

/// 21803 is 2.18.3; before 2.9, 2804 was 2.8.4.
void RunBuilder::version_code(int code) {
  run_.nccl = code >= 10000 ? Version{code / 10000, code / 100 % 100, code % 100}
                            : Version{code / 1000, code / 100 % 10, code % 100};
}

void RunBuilder::device(int rank, int group, const std::string& host, const std::string& name) {
  ranks_[rank] = {group, host};
  if (run_.device.empty()) run_.device = name;
}

void RunBuilder::row(double bytes, double us, double algbw, double busbw, std::string_view reduction) {
  if (bytes <= 0 || us <= 0) return;  // nccl-tests starts with nothing where a rank's part would be less than a number
  run_.sizes.push_back({bytes, us});
  if (algbw > best_algbw_) best_algbw_ = algbw, bus_ratio_ = busbw / algbw;
  reduction_ = reduction;
}

std::optional<Group> RunBuilder::group() const {
  std::map<std::string, int> hosts;
  int ranks = 0;
  for (const auto& [rank, place] : ranks_)
    if (place.group == ranks_.begin()->second.group) ++hosts[place.host], ++ranks;
  if (hosts.empty()) return {};
  const int per_node = hosts.begin()->second;
  for (const auto& [host, count] : hosts)
    if (count != per_node)
      refuse("devices", fmt::format("{} ranks on {}, {} on {}; expected equally many on every host", per_node,
                                    hosts.begin()->first, count, host));
  return Group{ranks, per_node, 1};
}

NcclTestsRun RunBuilder::finish() {
  if (!has_rows())
    refuse("", "no results; expected the output of nccl-tests, as text with its header line or as JSON (-J)");
  run_.group = group();
  if (!run_.kind && run_.group) run_.kind = kind_by_ratio(bus_ratio_, run_.group->ranks, reduction_);
  return std::move(run_);
}

NcclTestsRun parse_nccl_tests(std::string_view text, const std::string& path) {
  RunBuilder builder(path);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{')
    read_json(text, builder);
  else
    read_text(text, builder);
  return builder.finish();
}

NcclTestsRun read_nccl_tests(const std::string& path) {
  return parse_nccl_tests(read_whole({path, "", "expected the output of nccl-tests"}), path);
}

}  // namespace foreshard::sim::network
