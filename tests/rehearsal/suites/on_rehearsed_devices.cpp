#include "rehearsal/engine/rehearsed.hpp"

namespace foreshard::parity {

/// Steps in f32 run on devices; those in double or by reference kernels stay on processor cores, as the truth. Where a
/// suite slows ops down, streams are slow.
RunSetup on_engine_under_test(const RunSetup& setup) {
  if (setup.engine || setup.reference || setup.dtype != DType::f32) return setup;
  const RunSetup on_devices = on_rehearsed_devices(setup);
  if (setup.before_op) rehearsal::delay_streams(setup.seed, 200);
  return on_devices;
}

}  // namespace foreshard::parity
