#pragma once
#include "sim/machine.hpp"

namespace foreshard::sim::cost {

/// Duration of a kernel on one core while `busy_cores` cores of the node run kernels: the kernel's work divided by a
/// rate interpolated in the logarithms of its extents, and between the measured numbers of busy cores; never less than
/// the machine's floor. Tables of the same `dtype` are preferred to those of f32, then those with the same
/// `accumulate`. An optimizer without a table takes adamw's time by the bytes it moves. Result in seconds. `source`
/// receives where the rate comes from.
double kernel_seconds(const Machine& machine, OpKind kind, bool accumulate, const Sizes& sizes, int busy_cores,
                      std::string* source = nullptr, DType dtype = DType::f32);

/// How many times faster a team of `threads` is than one thread, where the team's cores are its own:
/// 1 + (threads − 1)·(c·e − 1)/(c − 1), with e the measured efficiency of a team of all c cores.
double team_speed(const Machine& machine, int threads);

}  // namespace foreshard::sim::cost
