#pragma once
#include <string>

#include "kernels/cuda/cudnn/descriptor.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// A device as cuDNN needs to know it.
struct Device {
  const char* name;
  int architecture;  ///< 80, 90 or 100
  int multiprocessors, clock_khz, memory_clock_khz, l2_bytes, shared_bytes;
  long long memory_bytes;
};

// About as NVIDIA states them; which plans there are follows from architecture and shared memory.
constexpr Device a100{"NVIDIA A100-SXM4-80GB", 80, 108, 1410000, 1593000, 41943040, 166912, 85000000000};
constexpr Device h100{"NVIDIA H100 80GB HBM3", 90, 132, 1980000, 2619000, 52428800, 232448, 85000000000};
constexpr Device b200{"NVIDIA B200", 100, 148, 1965000, 3996000, 132644864, 232448, 191000000000};

/// In the form that cuDNN 9.19 writes and reads.
std::string json_of(const Device&);

Descriptor properties_of(const Device&);

}  // namespace foreshard::kernels::cuda::cudnn
