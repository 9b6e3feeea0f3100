#pragma once
#include <array>
#include <cstdint>

#include "sim/cluster.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim::planner {

/// What the compute lane does, as far as a step's time is explained by it.
enum class Work : std::uint8_t { forward, backward, recompute, update, count_ };
/// By which kind of kernel.
enum class Kernel : std::uint8_t { product, attention, rest, count_ };

/// Where the time of one predicted step on a GPU goes; all parts add up to the step.
struct TimeParts {
  template <class Of>
  using By = std::array<double, static_cast<std::size_t>(Of::count_)>;
  std::array<By<Kernel>, static_cast<std::size_t>(Work::count_)> work_s{};  ///< each kernel alone, on the mean rank
  double slowest_rank_s = 0;                         ///< besides: what the slowest rank takes longer
  double beside_s = 0;                               ///< besides: what kernels take longer beside collectives
  std::array<double, plan::lane_count> exposed_s{};  ///< compute waits for this lane
  double other_s = 0;                                ///< neither
  double of(Work work) const;
  double total() const;
};

/// A wait of the compute lane counts for the lane whose op ends it, as far as that op runs in it, and before for the op
/// that that one waited for. `prediction` is of `plan` on `cluster`.
TimeParts time_parts(const plan::Plan& plan, const Prediction& prediction, const Cluster& cluster);

}  // namespace foreshard::sim::planner
