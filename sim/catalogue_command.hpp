#pragma once

namespace foreshard::sim {

/// foreshard-plan catalogue: prints the clusters and GPUs whose names predictions know. Returns the exit code.
int catalogue_command(int argc, const char* const* argv);

}  // namespace foreshard::sim
