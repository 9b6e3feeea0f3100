#include "sim/virtual_time.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace foreshard::sim {
namespace {

TEST(VirtualTime, RoundsToNanosecondsAndNoOpTakesNone) {
  EXPECT_EQ(to_nanoseconds(0), 0);
  EXPECT_EQ(to_nanoseconds(1.6e-9), 2);
  EXPECT_EQ(op_nanoseconds(0), 1);
  EXPECT_EQ(op_nanoseconds(86400), 86'400'000'000'000);
}

/// They were negative before: 2⁶³ nanoseconds of work, in 2⁻¹⁶ of them, are 39 hours.
TEST(VirtualTime, RefusesWhatWouldWrap) {
  for (const double seconds : {1e5, 1e300, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_THROW(to_nanoseconds(seconds), InputError) << seconds;
}

}  // namespace
}  // namespace foreshard::sim
