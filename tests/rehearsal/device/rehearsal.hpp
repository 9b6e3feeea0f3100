#pragma once
#include <gtest/gtest.h>

#include <string>

#include "rehearsal/control.hpp"

namespace rehearsal {

/// Begins without errors and ends with nothing left.
class Rehearsal : public testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override {
    reset();
    const Live left = live();
    EXPECT_EQ(left.allocations, 0);
    EXPECT_EQ(left.streams, 0);
    EXPECT_EQ(left.events, 0);
    EXPECT_EQ(left.graphs, 0);
    EXPECT_EQ(left.communicators, 0);
  }
};

/// The one report since the last reset says all of this.
inline void expect_report(const std::vector<std::string>& parts) {
  ASSERT_EQ(reports().size(), 1U);
  for (const std::string& part : parts) EXPECT_NE(reports()[0].find(part), std::string::npos) << reports()[0];
}

}  // namespace rehearsal
