#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

/// What every communicator must do, and every group of ranks. An implementation instantiates GroupContract, and
/// CommunicatorContract if it is a whole communicator, with Runs. Every check happens on every rank of the run that
/// this process holds.
namespace foreshard::comm::testing {

/// What a transport promises of sums. Those of integers are exact with either.
enum class Sums {
  of_the_tree,  ///< the canonical tree's bits, made in float of halves
  in_any_order  ///< each addition may round to the type that travels; same bits on every rank and in every run
};

/// How to call a function once per rank, each with its own connection, and what may be asked of it.
struct Run {
  std::string name;
  int size = 1;
  std::function<void(const std::function<void(Communicator&)>&)> on_every_rank;
  Sums sums = Sums::of_the_tree;
  bool only_floats_add_up = false;      ///< only f32, bf16 and f16 are accumulated, or left in another type
  bool groups_are_of_one_size = false;  ///< at a time
};
inline void PrintTo(const Run& run, std::ostream* out) { *out << run.name; }
inline std::string name_of_run(const ::testing::TestParamInfo<Run>& info) { return info.param.name; }

inline std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class OnEveryRank : public ::testing::TestWithParam<Run> {
 protected:
  /// Calls `check(ranks, arena)` on every rank.
  void on_every_rank(std::int64_t arena_bytes, const std::function<void(Communicator&, std::span<std::byte>)>& check) {
    GetParam().on_every_rank([&](Communicator& ranks) { check(ranks, ranks.arena(arena_bytes)); });
  }
  int size() const { return GetParam().size; }
};

}  // namespace foreshard::comm::testing
