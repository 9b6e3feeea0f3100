#pragma once
#include "base/dtype.hpp"
#include "sim/cost/gpu_profile.hpp"

namespace foreshard::sim::cost {

/// Time of a kernel that does little but move `bytes` (read and written together): at the part of HBM's rate that good
/// kernels reach; what L2 holds at `l2_speedup` times that. A working set that is larger than L2 is in L2 by the part
/// that fits, less the larger it is, so that time grows with bytes without a step: the part in L2 is
/// min(1, L2 / bytes)². Never less than a kernel's start and end.
double memory_bound_seconds(const GpuProfile& profile, const GpuRates& gpu, double bytes, Running running);

/// Bytes that a fused optimizer moves for `elements` parameters of that type: the parameter and each moment read and
/// written, the gradient read, of which all but the parameter have 32 bits.
double update_bytes(double elements, int moments, DType parameter = DType::f32);

}  // namespace foreshard::sim::cost
