#pragma once

namespace foreshard::sim::allocator {

/// foreshard-plan replay-memory FILE.csv: a list of allocator events, replayed; prints statistics, the timeline and
/// what makes the peak. Returns the exit code: 0, or infeasible where memory runs out.
int replay_memory(int argc, const char* const* argv);

}  // namespace foreshard::sim::allocator
