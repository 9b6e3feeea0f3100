#include "local_run.hpp"

namespace foreshard::parity {

RunSetup on_engine_under_test(const RunSetup& setup) { return setup; }

}  // namespace foreshard::parity
