#pragma once
#include "sim/allocator/phase_memory.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {

/// What FSDP needs to wrap a model that every rank brings whole to its device, in `type`: FSDP1 makes the flat
/// parameter of each unit, the root's last, and of that the shard; FSDP2 a parameter's shard after the other. What a
/// unit is made of dies with it, and all of it here at last: the allocator keeps the segments.
/// Source: torch/distributed/fsdp/_flat_param.py (`flatten_tensors`, `_get_shard`), _fully_shard/_fsdp_param.py.
void load_whole(const TorchRun& run, DType type, Place& place);

/// What a checkpoint of parameters and both moments needs. FSDP1 gathers a unit after the other, whatever is saved, and
/// keeps copies: of its shard, of all, or none on the device; FSDP2 saves its shards as they are, or gathers a
/// parameter after the other. Source: torch/distributed/fsdp/_state_dict_utils.py, _optim_utils.py.
void save(const TorchRun& run, allocator::Saving saving, Place& place);

}  // namespace foreshard::sim::torch
