#pragma once
#include <functional>
#include <string_view>

#include "base/config.hpp"

namespace foreshard {

/// Runs `body` as the whole of command `program` and returns its exit code. The only place that catches: an exception
/// becomes one block on stderr (what, where, what to do) and a code: InputError its own, everything else 1. Errors of
/// usage, which all ranks see alike, are printed by launch rank 0 only. Then `on_failure(code)` is called, so that the
/// ranks of an MPI job end together; it may not return.
///
///   int main(int argc, char** argv) {
///     return foreshard::run_main("foreshard-plan", [&] { return run(argc, argv); });
///   }
int run_main(std::string_view program, const std::function<int()>& body,
             const std::function<void(int)>& on_failure = {});

/// Answers --help or --version on stdout (launch rank 0 only) if `config` was asked for it. True: the command is done.
bool answered(const Config& config);

}  // namespace foreshard
