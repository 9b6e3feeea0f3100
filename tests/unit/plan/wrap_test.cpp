#include "plan/wrap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Policy = Wrap::Policy;

Graph untied_graph() {
  return model::build_gpt(
      {.layers = 2, .width = 16, .heads = 2, .vocab_size = 31, .max_seq_len = 8, .tied_head = false}, {2, 8});
}

std::vector<std::string> unit_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const model::Unit& unit : graph.units) names.push_back(unit.name);
  return names;
}

std::vector<std::string> parameters_of(const Graph& graph, std::size_t unit) {
  std::vector<std::string> names;
  for (const model::ParameterId id : graph.units[unit].parameters) names.push_back(graph.parameters[id.value].name);
  return names;
}

std::int64_t elements_of(const Graph& graph, const model::Unit& unit) {
  std::int64_t elements = 0;
  for (const model::ParameterId id : unit.parameters) elements += graph.parameters[id.value].elements();
  return elements;
}

/// Runs of operators of one unit other than the root.
int runs(const Graph& graph) {
  int count = 0;
  model::UnitId before;
  for (const model::Operator& op : graph.operators)
    if (op.unit != std::exchange(before, op.unit)) count += op.unit != model::root_unit;
  return count;
}

const std::vector<Wrap> all_policies{{},
                                     {.policy = Policy::blocks, .count = 3},
                                     {.policy = Policy::size, .count = 1},
                                     {.policy = Policy::size, .count = 2000},
                                     {.policy = Policy::classes, .names = {"attn", "mlp"}},
                                     {.policy = Policy::classes, .names = {"block", "attn"}},
                                     {.policy = Policy::list, .names = {"h.0.mlp", "h.1", "lm_head"}},
                                     {.policy = Policy::none}};

TEST(Wrap, OfBlocksIsTheModelsOwn) {
  const Graph graph = tiny_graph(), wrapped = wrap(graph, {});
  EXPECT_EQ(unit_names(wrapped), unit_names(graph));
  for (std::size_t unit = 0; unit < graph.units.size(); ++unit)
    EXPECT_EQ(parameters_of(wrapped, unit), parameters_of(graph, unit));
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    EXPECT_EQ(wrapped.operators[i].unit, graph.operators[i].unit) << i;
}

TEST(Wrap, OfSeveralBlocksLeavesARemainder) {
  const Graph graph = tiny_graph(), wrapped = wrap(graph, {.policy = Policy::blocks, .count = 3});
  EXPECT_THAT(unit_names(wrapped), ElementsAre("root", "u0", "u1"));
  EXPECT_EQ(wrapped.units[1].parameters.size(), 3 * wrapped.units[2].parameters.size());
  EXPECT_EQ(parameters_of(wrapped, 2), parameters_of(graph, 4));
}

TEST(Wrap, OfClassesWrapsEachModuleOfThem) {
  const Graph wrapped = wrap(tiny_graph(2), {.policy = Policy::classes, .names = {"attn", "mlp"}});
  EXPECT_THAT(unit_names(wrapped), ElementsAre("root", "u0", "u1", "u2", "u3"));
  EXPECT_THAT(parameters_of(wrapped, 1), ElementsAre("h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias",
                                                     "h.0.attn.c_proj.weight", "h.0.attn.c_proj.bias"));
  EXPECT_THAT(parameters_of(wrapped, 4),
              ElementsAre("h.1.mlp.c_fc.weight", "h.1.mlp.c_fc.bias", "h.1.mlp.c_proj.weight", "h.1.mlp.c_proj.bias"));
  EXPECT_THAT(parameters_of(wrapped, 0), testing::IsSupersetOf({"h.0.ln_1.weight", "h.1.ln_2.bias", "wte.weight"}));
  EXPECT_EQ(runs(wrapped), 4);
}

TEST(Wrap, OfNestedModulesGivesLeftoversToTheNearestAround) {
  const Graph wrapped = wrap(tiny_graph(2), {.policy = Policy::list, .names = {"h.1.mlp", "h.1"}});
  EXPECT_THAT(unit_names(wrapped), ElementsAre("root", "u0", "u1"));
  EXPECT_THAT(parameters_of(wrapped, 1),
              ElementsAre("h.1.ln_1.weight", "h.1.ln_1.bias", "h.1.attn.c_attn.weight", "h.1.attn.c_attn.bias",
                          "h.1.attn.c_proj.weight", "h.1.attn.c_proj.bias", "h.1.ln_2.weight", "h.1.ln_2.bias"));
  EXPECT_EQ(parameters_of(wrapped, 2).size(), 4U);
}

TEST(Wrap, BySizeFillsUnitsOfConsecutiveModules) {
  const Graph graph = untied_graph();
  for (const std::int64_t least : {1, 700, 2000, 5000, 1'000'000}) {
    const Graph wrapped = wrap(graph, {.policy = Policy::size, .count = least});
    std::set<std::string> modules;
    for (std::size_t unit = 1; unit < wrapped.units.size(); ++unit) {
      EXPECT_GE(elements_of(wrapped, wrapped.units[unit]), least);
      EXPECT_LT(elements_of(wrapped, wrapped.units[unit]) - 4 * 16 * 17, least) << "no module of these is larger";
    }
    EXPECT_LT(elements_of(wrapped, wrapped.units[0]), least) << "only the rest";
    EXPECT_EQ(runs(wrapped), static_cast<int>(wrapped.units.size()) - 1) << "consecutive";
  }
}

TEST(Wrap, GivesEveryParameterToOneUnit) {
  for (const Graph& graph : {tiny_graph(), untied_graph()})
    for (const Wrap& how : all_policies) {
      const Graph wrapped = wrap(graph, how);
      std::set<std::uint32_t> seen;
      for (std::uint32_t unit = 0; unit < wrapped.units.size(); ++unit)
        for (const model::ParameterId id : wrapped.units[unit].parameters) {
          EXPECT_TRUE(seen.insert(id.value).second);
          EXPECT_EQ(wrapped.parameters[id.value].unit.value, unit);
        }
      EXPECT_EQ(seen.size(), graph.parameters.size());
    }
}

TEST(Wrap, ATiedTableLivesInTheRoot) {
  const Graph graph = tiny_graph(2);
  for (const Wrap& how : {Wrap{.policy = Policy::size, .count = 1}, Wrap{.policy = Policy::list, .names = {"wte"}}}) {
    const Graph wrapped = wrap(graph, how);
    EXPECT_THAT(parameters_of(wrapped, 0), testing::Contains("wte.weight"));
    EXPECT_THAT(parameters_of(wrapped, 1), testing::Contains("wpe.weight")) << "it has one reader";
  }
  const Graph head = wrap(graph, {.policy = Policy::list, .names = {"lm_head"}});
  EXPECT_THAT(unit_names(head), ElementsAre("root")) << "no unit is left without parameters";
  EXPECT_THAT(unit_names(wrap(untied_graph(), {.policy = Policy::list, .names = {"lm_head", "wte"}})),
              ElementsAre("root", "u0", "u1"));
}

TEST(Wrap, IgnoredParametersHaveAReplicatedUnitOfTheirOwn) {
  const Graph wrapped = wrap(tiny_graph(2), {.ignored = {"*.ln_?.*", "ln_f.*"}});
  EXPECT_EQ(wrapped.units.back().name, "ignored");
  EXPECT_TRUE(wrapped.units.back().replicated);
  EXPECT_EQ(wrapped.units.back().parameters.size(), 10U);
  EXPECT_EQ(std::ranges::count(wrapped.units, true, &model::Unit::replicated), 1);
}

TEST(Wrap, OverridesSayHowLongUnitsAreKept) {
  const Wrap how{.overrides = {{"h.?.mlp.*", Keep::micro_batch, false}, {"u2", Keep::step, true}}};
  const Graph wrapped = wrap(tiny_graph(), how);
  EXPECT_THAT(keeps(wrapped, how, Keep::visit),
              ElementsAre(Keep::visit, Keep::micro_batch, Keep::micro_batch, Keep::step, Keep::micro_batch));
  EXPECT_TRUE(wrapped.units[3].replicated);
  EXPECT_FALSE(wrapped.units[2].replicated);
}

TEST(Wrap, SaysWhatDoesNotFit) {
  const Graph graph = tiny_graph(2);
  const auto problem = [&](const Wrap& how) { return problems(graph, how); };
  EXPECT_THAT(problem({.policy = Policy::list, .names = {"h.0", "h.1.atn"}}), ElementsAre(HasSubstr("'h.1.atn'")));
  EXPECT_THAT(problem({.policy = Policy::list, .names = {"h.1.atn"}}), ElementsAre(HasSubstr("h.1.attn")));
  EXPECT_THAT(problem({.policy = Policy::classes, .names = {"mpl"}}), ElementsAre(HasSubstr("mlp")));
  EXPECT_THAT(problem({.frozen = {"h.7.*"}, .ignored = {"*.wieght"}}),
              ElementsAre(HasSubstr("units.frozen: 'h.7.*'"), HasSubstr("units.ignored: '*.wieght'")));
  EXPECT_THAT(problem({.frozen = {"*"}}), ElementsAre(HasSubstr("nothing is left to train")));
  EXPECT_THAT(problem({.overrides = {{"u9", Keep::step, false}}}), ElementsAre(HasSubstr("units.override: 'u9'")));
  for (const Wrap& how : all_policies) EXPECT_THAT(problem(how), IsEmpty());
}

}  // namespace
}  // namespace foreshard::plan
