#pragma once

namespace foreshard::sim::network {

/// `foreshard-plan collective`: prints the time of single collectives on a cluster, by size. Returns the exit code;
/// throws InputError.
int collective_command(int argc, const char* const* argv);

}  // namespace foreshard::sim::network
