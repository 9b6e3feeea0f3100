#pragma once

namespace foreshard::sim::network {

/// foreshard-plan import-nccl FILE… --out=fabric.json: fits a fabric to what nccl-tests measured. Returns the exit
/// code.
int import_nccl(int argc, const char* const* argv);

}  // namespace foreshard::sim::network
