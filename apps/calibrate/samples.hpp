#pragma once
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "plan/plan.hpp"
#include "sim/machine.hpp"
#include "trace/recorder.hpp"

namespace foreshard::calibrate {

/// The lower quartile, which stands for a typical undisturbed time: what disturbs only ever adds. 0 of none.
double typical(std::vector<double> values);

/// Durations of a plan's ops over several runs of the same step.
class Samples {
 public:
  explicit Samples(const plan::Plan& plan) : plan_(plan), seconds_(plan.ops.size()) {}

  /// Events of one step of one rank.
  void add(const std::vector<trace::Event>& events);

  /// Adds what kernels took to `tables` of `busy_cores`: for each kind and size the mean over its ops of each op's
  /// typical time. Only of the kinds that are `wanted`.
  void add_to(std::vector<sim::KernelTable>& tables, int busy_cores, const std::string& source,
              const std::function<bool(model::OpKind)>& wanted) const;

  /// Adds to `seconds` what collectives of a lone rank took, which are copies and casts: of each kind, by the bytes of
  /// the whole buffer, the typical time of each op.
  using LoneCollectives = std::map<model::OpKind, std::map<std::int64_t, std::vector<double>>>;
  void add_to(LoneCollectives& seconds) const;

  /// Sum over the compute ops of their typical times, in seconds.
  double compute_seconds() const;

 private:
  const plan::Plan& plan_;
  std::vector<std::vector<double>> seconds_;  ///< by op
};

/// Tables of one rank, each size with the mean of its times.
std::vector<sim::CollectiveTable> tables_of(const Samples::LoneCollectives& seconds, const std::string& source);

/// Times in seconds between what a compute op had to await and its start. (Ops of other lanes may have waited for the
/// core, too.)
struct Handovers {
  std::vector<double> next;  ///< the op before on its lane ended last
  std::vector<double> wake;  ///< an op of another lane ended last

  /// Events of one step of one rank, lane by lane, of one micro-batch.
  void add(const plan::Plan& plan, const std::vector<trace::Event>& events);
};

}  // namespace foreshard::calibrate
