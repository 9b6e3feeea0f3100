#pragma once
#include <cstdint>

#include "engine/cuda_engine.hpp"
#include "engine/cuda_meter.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine {

/// FNV-1a over sizes of types.
template <class... Types>
consteval std::uint64_t layout_of() {
  std::uint64_t hash = 14695981039346656037ULL;
  ((hash = (hash ^ sizeof(Types)) * 1099511628211ULL), ...);
  return hash;
}

/// How what passes between a program and its module lies in memory. A program takes no module that has another, or that
/// was built of another commit: it would read wrong numbers.
constexpr std::uint64_t module_layout =
    layout_of<EngineSpec, CudaOptions, CudaDevice, CudaTrial, CudaCollective, KernelChoices, LossFault,
              comm::Communicator, comm::Counters, exec::Instance, exec::StepContext, model::Graph, model::Operator,
              plan::Plan, plan::Op, plan::Mesh, char[static_cast<int>(model::OpKind::count_)]>();

}  // namespace foreshard::engine
