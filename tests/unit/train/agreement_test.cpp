// Ranks that would not do the same are told so before any data moves.
#include "train/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "faulty_communicator.hpp"
#include "plan/query.hpp"
#include "unit/plan/tiny.hpp"

namespace foreshard::train {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

/// What each of three ranks throws; empty: nothing.
std::vector<std::string> errors_of(const std::function<void(comm::Communicator&)>& agree) {
  std::vector<std::string> errors(3);
  on_ranks(3, [&](comm::Communicator& ranks) {
    try {
      agree(ranks);
    } catch (const InputError& error) {
      errors[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  return errors;
}

/// Gathers u1 where u2 is gathered and the other way round: they are of equal size.
void swap_gathers(plan::Plan& plan) {
  std::vector<plan::Op*> gathers;
  for (const plan::UnitId unit : {plan::UnitId{1}, plan::UnitId{2}})
    gathers.push_back(
        &plan.ops[plan::find(plan, plan.segments[0], {.kind = plan::OpKind::all_gather, .unit = unit}).front().value]);
  std::swap(gathers[0]->unit, gathers[1]->unit);
  std::swap(gathers[0]->first_operand, gathers[1]->first_operand);
}

TEST(Agreement, NamesTheRankAndTheFirstOpThatIsSwapped) {
  const auto errors = errors_of([](comm::Communicator& ranks) {
    plan::Plan plan = plan::tiny_plan({}, 3);
    if (ranks.rank() == 1) swap_gathers(plan);
    expect_same_plan(ranks, plan);
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank(s) 1 differ from rank 0")));
  EXPECT_THAT(errors[0], AllOf(testing::ContainsRegex("rank 0: .*all_gather +u0"),
                               testing::ContainsRegex("rank 1: .*all_gather +u1")));
}

TEST(Agreement, NamesTheFirstParameterOfLayersThatAreSwappedThoughPlansAreEqual) {
  const auto errors = errors_of([](comm::Communicator& ranks) {
    model::Graph graph = plan::tiny_graph();
    const auto& units = graph.units;
    if (ranks.rank() == 2)
      for (std::size_t i = 0; i < units[1].parameters.size(); ++i)
        std::swap(graph.parameters[units[1].parameters[i].value].name,
                  graph.parameters[units[2].parameters[i].value].name);
    expect_same_plan(ranks, plan::build_plan(graph, {.inner = 3}, {}));
    expect_same_parameters(ranks, graph);
  });
  EXPECT_THAT(errors, Each(HasSubstr("same parameters: rank(s) 2 differ from rank 0")));
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 0: h.0."), HasSubstr("rank 2: h.1.")));
}

Config config_with(const char* seed, const char* threads) {
  Config config("test");
  config.add("train.seed", 1, "");
  config.add("engine.threads", 1, "");
  const std::string arguments[] = {std::string("--train.seed=") + seed, std::string("--engine.threads=") + threads};
  const char* argv[] = {"test", arguments[0].c_str(), arguments[1].c_str()};
  config.parse(3, argv);
  return config;
}

TEST(Agreement, NamesTheKeyThatDiffers) {
  const auto errors = errors_of(
      [](comm::Communicator& ranks) { expect_same_config(ranks, config_with(ranks.rank() == 2 ? "5" : "7", "1")); });
  EXPECT_THAT(errors[0], AllOf(HasSubstr("rank 0: train.seed = 7"), HasSubstr("rank 2: train.seed = 5")));
}

TEST(Agreement, LetsRanksHaveTheirOwnThreads) {
  EXPECT_THAT(errors_of([](comm::Communicator& ranks) {
                expect_same_config(ranks, config_with("7", ranks.rank() == 2 ? "2" : "1"));
                expect_same_plan(ranks, plan::tiny_plan({}, 3));
                expect_same_parameters(ranks, plan::tiny_graph());
              }),
              Each(""));
}

}  // namespace
}  // namespace foreshard::train
