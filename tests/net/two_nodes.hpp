#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "faults/command.hpp"

namespace foreshard::net {

/// Which ranks are where: blocks puts 0 and 1 on the first node, cyclic 0 and 2.
enum class Order : std::uint8_t { blocks, cyclic };

/// Tests that train four ranks on two nodes; skipped where this machine does not let us make nodes.
class TwoNodes : public testing::Test {
 protected:
  static constexpr int ranks = 4, ranks_per_node = 2;

  void SetUp() override;

  /// The command that runs `command` on the first node.
  static std::string across(const std::string& command, Order order = Order::blocks, const std::string& options = "");

  faults::DataFolder data;
};

}  // namespace foreshard::net
