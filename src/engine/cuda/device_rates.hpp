#pragma once
#include "engine/cuda/device.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/cuda_meter.hpp"

namespace foreshard::engine::cuda {

/// The device that is the calling thread's current one, and its rates. `stream` is idle.
CudaDevice measured_device(const Device& device, const CudaTrial& trial, const Stream& stream);

}  // namespace foreshard::engine::cuda
