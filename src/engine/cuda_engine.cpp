#include "engine/cuda_engine.hpp"

#include "engine/cuda_module.hpp"

namespace foreshard::engine {

MakeEngine on_cuda(CudaOptions options) {
  return [options](const EngineSpec& spec) {
    auto* const make = reinterpret_cast<MakeCudaEngine*>(cuda_symbol("foreshard_make_cuda_engine"));
    return std::unique_ptr<Engine>(make(spec, options));
  };
}

}  // namespace foreshard::engine
