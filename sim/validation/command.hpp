#pragma once

namespace foreshard::sim::validation {

/// `foreshard-plan validate`: reads its command line (`argv[0]` is the word itself), predicts the rows of its tables
/// and prints how far off that is. Returns the exit code. Throws InputError.
int validate_command(int argc, const char* const* argv);

}  // namespace foreshard::sim::validation
