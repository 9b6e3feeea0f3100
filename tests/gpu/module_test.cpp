// The module with the CUDA engine loads, wherever it is built; what is missing then is a device at most.
#include <gmock/gmock.h>

#include "on_device.hpp"

namespace foreshard::parity {
namespace {

TEST(Module, LoadsWithAllThatItNeedsOfTheProgram) {
  const std::string missing = missing_for_cuda();
  EXPECT_THAT(missing, testing::AnyOf("", testing::HasSubstr("no CUDA device is visible")));
}

}  // namespace
}  // namespace foreshard::parity
