#include "two_nodes.hpp"

#include <fmt/format.h>

namespace foreshard::net {

namespace {

constexpr int not_permitted = 77;

const faults::Result& attempt() {
  static const faults::Result result = faults::run(fmt::format("{} true", FORESHARD_TWO_NODES));
  return result;
}

}  // namespace

void TwoNodes::SetUp() {
  if (attempt().exit_code == not_permitted) GTEST_SKIP() << attempt().output;
  ASSERT_EQ(attempt().exit_code, 0) << attempt().output;
}

std::string TwoNodes::across(const std::string& command, Order order, const std::string& options) {
  return fmt::format("{} {} {} {}", FORESHARD_TWO_NODES, order == Order::cyclic ? "--cyclic" : "", options, command);
}

}  // namespace foreshard::net
