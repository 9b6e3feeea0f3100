#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// A plan made by hand: unit u0 is gathered, used forward and backward, reduced, updated. Two segments, `only` and
/// `update`.
///
///   op 0 gather   all_gather u0                       -> whole
///   op 1 compute  linear u0 (waits for 0)       whole -> activation
///   op 2 compute  linear_weight_grad u0     activation -> gradient
///   op 3 reduce   reduce_scatter u0 (waits for 2)  gradient -> shard
///   op 4 compute  adamw u0 (waits for `reduced` of u0 in the segment before)
plan::Plan tiny_plan();

/// Times of one step of tiny_plan that starts at `start_ns`: every op takes 100 ns, as early as its waits permit. In it
/// compute idles in [0, 100) and [300, 400) while a collective runs. The step ends after 500 ns.
std::vector<Event> tiny_step(std::int64_t start_ns, std::int32_t step);

/// A folder of its own that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Writes a trace of tiny_plan: `ranks` ranks, steps 1 to `steps`, and closes it. Step s of rank r starts at 1000·s +
/// r. `change` may spoil the events of one rank and step before they are written.
void write_tiny(const std::string& path, int ranks, int steps, Kind kind = Kind::measured,
                const plan::Plan& plan = tiny_plan(), void (*change)(std::vector<Event>&) = nullptr);

/// The summary that write_tiny stores.
Summary tiny_summary(const plan::Plan& plan);

}  // namespace foreshard::trace
