#pragma once
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"
#include "sim/network/nccl_tests.hpp"

namespace foreshard::sim::network {

/// What the readers of both forms of nccl-tests' output collect.
class RunBuilder {
 public:
  explicit RunBuilder(std::string path) { run_.path = std::move(path); }

  void program(std::string_view name);
  void version_code(int code);
  void device(int rank, int group, const std::string& host, const std::string& name);
  /// One row; bandwidths in GB/s.
  void row(double bytes, double us, double algbw, double busbw, std::string_view reduction);
  bool has_rows() const { return !run_.sizes.empty(); }

  NcclTestsRun finish();
  [[noreturn]] void refuse(const std::string& where, const std::string& what) const;

 private:
  std::optional<Group> group() const;

  NcclTestsRun run_;
  struct Place {
    int group = 0;
    std::string host;
  };
  std::map<int, Place> ranks_;
  double bus_ratio_ = 0;  ///< busbw / algbw of the row where both have the most digits
  double best_algbw_ = 0;
  std::string reduction_;
};

void read_json(std::string_view text, RunBuilder& into);
void read_text(std::string_view text, RunBuilder& into);

}  // namespace foreshard::sim::network
