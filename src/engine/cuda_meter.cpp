#include "engine/cuda_meter.hpp"

#include "engine/cuda_module.hpp"

namespace foreshard::engine {

std::unique_ptr<CudaMeter> make_cuda_meter(comm::Communicator& ranks) {
  auto* const make = reinterpret_cast<MakeCudaMeter*>(cuda_symbol("foreshard_make_cuda_meter"));
  return std::unique_ptr<CudaMeter>(make(ranks));
}

}  // namespace foreshard::engine
