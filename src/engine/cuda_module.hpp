#pragma once

namespace foreshard::engine {

/// What the module of CUDA and NCCL gives under this name (extern "C"): it is beside the program, or in the folder that
/// FORESHARD_MODULE_PATH names. Throws InputError (usage) where it cannot be loaded or was built of other sources than
/// the program, and says what to do.
void* cuda_symbol(const char* name);

}  // namespace foreshard::engine
