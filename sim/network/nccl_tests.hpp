#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/network/collective.hpp"

namespace foreshard::sim::network {

/// One size of a run of nccl-tests: bytes of the whole buffer, microseconds out of place (in place where only that was
/// measured).
struct MeasuredSize {
  double bytes = 0, us = 0;
};

/// What a run of nccl-tests says of itself. What it does not say is empty, and the caller must know.
struct NcclTestsRun {
  std::string path;
  std::optional<model::OpKind> kind;  ///< by the program's name, else by busbw / algbw and the reduction
  std::optional<Version> nccl;
  std::optional<Group> group;  ///< by the list of devices: ranks, hosts
  std::string device;          ///< as the driver names it
  std::vector<MeasuredSize> sizes;
};

/// The output of all_gather_perf, reduce_scatter_perf or all_reduce_perf: text, whose columns are found by the header
/// line (with or without root, timestamps, per-iteration columns; "error" or "#wrong"; behind mpirun's tags), or the
/// JSON of -J, of which the environment is not looked at. Throws InputError (bad_input) with file, line, what was seen
/// and what was expected; also where results were wrong. Source of the forms: NVIDIA/nccl-tests src/util.cu,
/// src/common.cu.
NcclTestsRun read_nccl_tests(const std::string& path);
NcclTestsRun parse_nccl_tests(std::string_view text, const std::string& path);

}  // namespace foreshard::sim::network
