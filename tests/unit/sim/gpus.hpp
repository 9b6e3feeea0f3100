#pragma once
#include "sim/cost/gpu_profile.hpp"

namespace foreshard::sim::test {

// Vendor datasheets: dense peaks, memory bandwidth, L2.
inline const cost::GpuRates a100{"A100-SXM4-80GB", "sm_80", 312e12, 156e12, 19.5e12, 108, 2000e9, 40e6};
inline const cost::GpuRates h100{"H100-SXM5-80GB", "sm_90", 989e12, 494.5e12, 67e12, 132, 3350e9, 50e6};
inline const cost::GpuRates h200{"H200-SXM-141GB", "sm_90", 989e12, 494.5e12, 67e12, 132, 4800e9, 50e6};
inline const cost::GpuRates b200{"B200-SXM-180GB", "sm_100", 2250e12, 1125e12, 80e12, 148, 8000e9, 126e6};

}  // namespace foreshard::sim::test
