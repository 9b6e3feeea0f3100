#include "sim/virtual_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace foreshard::sim {

std::int64_t to_nanoseconds(double seconds) {
  constexpr double day = 86400;
  if (!(seconds <= day))
    throw InputError(
        ExitCode::usage,
        fmt::format("one kernel, collective or hand-over of the step would take {:.3g} s, expected at most "
                    "a day\n  look at the rates of the machine, and at the sizes of model and batch",
                    seconds));
  return std::llround(seconds * 1e9);
}

std::int64_t op_nanoseconds(double seconds) { return std::max<std::int64_t>(1, to_nanoseconds(seconds)); }

}  // namespace foreshard::sim
