#pragma once
#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace foreshard::trace {

/// The outcome of one check: how much was looked at, how much is wrong, and the first thing that is.
struct Finding {
  std::string check;
  std::string what;  ///< what holds if nothing is wrong
  std::size_t looked_at = 0, violations = 0;
  std::string first_violation;
};

/// Whether a trace agrees with itself and with its plan:
///   index   /batches covers /events once, each batch of one rank
///   ops     lane and kind of every event are those of its op; no negative duration
///   lanes   the ops of one lane of one rank never overlap
///   order   within a run of a segment a lane's ops start in the plan's order
///   waits   every op starts at or after the end of everything it waits for, also across segments
///   counts  every recorded step has each op of the plan once (the last step of a file that was not closed apart)
///   memory  no row of /memory says more bytes than the arena has
std::vector<Finding> check(const Trace& trace);

/// "op 3 reduce_scatter u0 (reduce)".
std::string op_text(const plan::Plan& plan, std::uint32_t op);

}  // namespace foreshard::trace
