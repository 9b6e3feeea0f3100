// However parameters are grouped into units, frozen, left unsharded or kept, training computes what one rank computes
// with the model's own units: reference kernels in double; in fp32, to the bit where additions have the same order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/glob.hpp"
#include "local_run.hpp"
#include "train/initial_values.hpp"

namespace foreshard::parity {
namespace {

using plan::Keep;
using plan::Mesh;
using plan::Wrap;
using Policy = Wrap::Policy;

const model::GptConfig odd_model{
    .layers = 3, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .ffn_width = 23};
constexpr std::int64_t seq = 7, rows = 24;
constexpr double tolerance = 1e-11;

RunSetup setup_of(const Mesh& mesh, const Wrap& wrap, int k = 1, const model::GptConfig& model = odd_model) {
  RunSetup setup{.settings = settings_of(model, seq, rows, mesh, k)};
  setup.settings.schedule.wrap = wrap;
  setup.learning_rates = std::vector<double>(4, 1e-2);
  setup.batch = [vocab = model.vocab_size](std::int64_t step) { return formula_batch(rows, seq, vocab, step, 5); };
  return setup;
}

RunSetup with(RunSetup setup, Keep keep) {
  setup.settings.schedule.keep = keep;
  return setup;
}

RunSetup in_float(RunSetup setup) {
  setup.dtype = DType::f32;
  setup.reference = false;
  setup.optimizer.max_norm = 0;  // the last bits of the norm depend on how eight elements come together in a shard
  return setup;
}

void expect_close(const Outcome& a, const Outcome& b, const std::string& what) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], tolerance * a.losses[i]) << what << " step " << i + 1;
    EXPECT_NEAR(a.grad_norms[i], b.grad_norms[i], tolerance * a.grad_norms[i]) << what << " step " << i + 1;
  }
  EXPECT_LE(distance(a.first_gradients, b.first_gradients), tolerance) << what;
  EXPECT_LE(distance(a.weights, b.weights), tolerance) << what;
}

struct Case {
  std::string name;
  Wrap wrap;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const std::vector<Case> policies{
    {"block", {}},
    {"blocks", {.policy = Policy::blocks, .count = 2}},
    {"size", {.policy = Policy::size, .count = 500}},
    {"leaves", {.policy = Policy::size, .count = 1}},
    {"classes", {.policy = Policy::classes, .names = {"attn", "mlp"}}},
    {"nested", {.policy = Policy::classes, .names = {"block", "attn", "c_fc"}}},
    {"list", {.policy = Policy::list, .names = {"h.0.mlp", "h.1", "h.2.attn.c_proj", "wte", "lm_head"}}},
    {"none", {.policy = Policy::none}}};

const std::vector<Mesh> meshes{{1, 1, 2}, {1, 1, 3}, {1, 1, 8}, {2, 1, 2}, {3, 1, 1}, {1, 2, 2}, {2, 2, 2}};

std::string text_of(const Mesh& mesh) {
  return std::to_string(mesh.replicas) + "x" + std::to_string(mesh.outer) + "x" + std::to_string(mesh.inner);
}

/// Parameter values before the first step.
Tensors initial_weights(const Wrap& wrap) {
  RunSetup setup = setup_of({}, wrap);
  setup.learning_rates = {};
  return run(setup).weights;
}

Tensors only(const Tensors& all, const Tensors& wanted) {
  Tensors some;
  for (const auto& [name, values] : wanted) some[name] = all.at(name);
  return some;
}

class Policies : public testing::TestWithParam<Case> {};

TEST_P(Policies, EqualOneRank) {
  const Outcome one = run(setup_of({}, {}));
  for (const Mesh& mesh : meshes) expect_close(one, run(setup_of(mesh, GetParam().wrap)), text_of(mesh));
  for (const Keep keep : {Keep::micro_batch, Keep::step})
    expect_close(one, run(with(setup_of({1, 1, 4}, GetParam().wrap, 3), keep)), "kept longer");
  expect_close(one, run(setup_of({}, GetParam().wrap, 2)), "one rank");
}

TEST_P(Policies, HaveTheSameBits) {
  const Outcome expected = run(in_float(setup_of({1, 1, 4}, {}, 2)));
  for (const Mesh& mesh : {Mesh{1, 1, 4}, Mesh{2, 1, 2}, Mesh{1, 2, 2}, Mesh{4, 1, 1}}) {
    const Outcome seen = run(in_float(setup_of(mesh, GetParam().wrap, 2)));
    EXPECT_EQ(expected.losses, seen.losses) << text_of(mesh);
    EXPECT_EQ(expected.first_gradients, seen.first_gradients) << text_of(mesh);
    EXPECT_EQ(expected.weights, seen.weights) << text_of(mesh);
  }
}

/// The table's gradient is the sum of what it would have as embedding and as head, counted once in the norm.
TEST_P(Policies, ATiedTableHasTheSumOfTheUntiedGradients) {
  model::GptConfig untied = odd_model;
  untied.tied_head = false;
  RunSetup apart = setup_of({}, {}, 1, untied);
  apart.initial = [](const model::Parameter& parameter, std::int64_t index) {
    model::Parameter named = parameter;
    if (named.name == "lm_head.weight") named.name = "wte.weight";
    return train::initial_value(named, 7, index);
  };
  Tensors expected = run(apart).first_gradients;
  for (std::size_t i = 0; i < expected["wte.weight"].size(); ++i)
    expected["wte.weight"][i] += expected["lm_head.weight"][i];
  expected.erase("lm_head.weight");
  for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 2}, Mesh{1, 1, 3}, Mesh{1, 1, 8}})
    EXPECT_LE(distance(expected, run(setup_of(mesh, GetParam().wrap)).first_gradients), tolerance) << text_of(mesh);
}

INSTANTIATE_TEST_SUITE_P(All, Policies, testing::ValuesIn(policies),
                         [](const auto& instance) { return instance.param.name; });

/// Freezing does not depend on how units are made.
class Frozen : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static Wrap wrap_of(Wrap wrap = {}) {
    wrap.frozen = GetParam();
    return wrap;
  }
  static bool is_frozen(const std::string& name) {
    return std::ranges::any_of(GetParam(), [&](const std::string& glob) { return matches_glob(glob, name); });
  }
};

TEST_P(Frozen, TheOthersHaveTheGradientsTheyHaveAnyway) {
  const Tensors all = run(setup_of({}, {})).first_gradients;
  for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 3}, Mesh{2, 1, 2}}) {
    const Outcome outcome = run(setup_of(mesh, wrap_of()));
    for (const auto& [name, values] : all) EXPECT_NE(outcome.first_gradients.contains(name), is_frozen(name)) << name;
    EXPECT_LE(distance(only(all, outcome.first_gradients), outcome.first_gradients), tolerance) << text_of(mesh);
    double squares = 0;
    for (const auto& [name, values] : outcome.first_gradients)
      for (const double value : values) squares += value * value;
    const double tokens = static_cast<double>(rows * seq - (rows * seq + 4) / 5);
    EXPECT_NEAR(outcome.grad_norms[0], std::sqrt(squares) / tokens, tolerance * outcome.grad_norms[0]);
  }
}

TEST_P(Frozen, WeightsKeepTheirBits) {
  const Tensors before = initial_weights(wrap_of());
  for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 3}, Mesh{2, 2, 2}}) {
    const Tensors after = run(setup_of(mesh, wrap_of())).weights;
    for (const auto& [name, values] : before) EXPECT_EQ(after.at(name) == values, is_frozen(name)) << name;
  }
}

TEST_P(Frozen, EveryPolicyEqualsOneRank) {
  const Outcome one = run(setup_of({}, wrap_of()));
  for (const Case& policy : policies)
    for (const Mesh& mesh : {Mesh{1, 1, 3}, Mesh{2, 2, 2}})
      expect_close(one, run(setup_of(mesh, wrap_of(policy.wrap))), policy.name + " on " + text_of(mesh));
  for (const Mesh& mesh : meshes)
    expect_close(one, run(setup_of(mesh, wrap_of(), mesh.world_size() < 5 ? 2 : 3)), text_of(mesh));
}

INSTANTIATE_TEST_SUITE_P(Some, Frozen,
                         testing::Values(std::vector<std::string>{"*.weight"},                // biases only
                                         std::vector<std::string>{"w*", "h.0.*", "h.1.ln*"},  // the lower part
                                         std::vector<std::string>{"h.*"},                     // whole units
                                         std::vector<std::string>{"h.1.*.c_fc.weight", "ln_f.bias",
                                                                  "h.0.ln_1.weight"}));

TEST(Units, IgnoredAndOverriddenOnesEqualOneRank) {
  const std::vector<Case> cases{
      {"norms ignored", {.ignored = {"*.ln_?.*"}}},
      {"a table ignored", {.policy = Policy::size, .count = 400, .ignored = {"wte.*", "h.1.mlp.*"}}},
      {"ignored and frozen", {.frozen = {"h.0.*"}, .ignored = {"*.bias"}}},
      {"all ignored", {.ignored = {"*"}}},
      {"one not sharded", {.overrides = {{"u1", Keep::step, true}}}},
      {"the root not sharded", {.overrides = {{"root", Keep::step, true}}}},
      {"each another",
       {.overrides = {{"u0", Keep::micro_batch, false}, {"u1", Keep::step, false}, {"h.2.*", Keep::step, true}}}}};
  for (const Case& c : cases) {
    Wrap own;
    own.frozen = c.wrap.frozen;
    const Outcome one = run(setup_of({}, own));
    for (const Mesh& mesh : meshes) {
      const int k = mesh.world_size() < 5 ? 2 : 3;
      expect_close(one, run(setup_of(mesh, c.wrap, k)), c.name + " on " + text_of(mesh));
      RunSetup accumulating = setup_of(mesh, c.wrap, k);
      for (const auto how : {plan::Accumulation::no_sync, plan::Accumulation::reduce_scatter}) {
        accumulating.settings.schedule.accumulation = how;
        expect_close(one, run(accumulating), c.name + ", accumulating, on " + text_of(mesh));
      }
    }
  }
}

TEST(Units, ARecomputedOrDroppedOutModelMayBeWrappedInAnyWay) {
  model::GptConfig model = odd_model;
  model.dropout = 0.2;
  const Outcome one = run(setup_of({}, {}, 1, model));
  for (const Case& policy : policies) {
    RunSetup setup = setup_of({1, 1, 3}, policy.wrap, 1, model);
    setup.settings.schedule.recompute.mode = plan::Recompute::Mode::full;
    expect_close(one, run(setup), policy.name);
  }
}

/// What is not sharded is cast to the type of computation like what is.
TEST(Units, IgnoredAndReplicatedOnesAreCastWithTheRest) {
  const auto in_bf16 = [](const Mesh& mesh, const Wrap& wrap) {
    RunSetup setup = in_float(setup_of(mesh, wrap, 2));
    setup.settings.schedule.precision.parameters = DType::bf16;
    return run(setup);
  };
  for (const Mesh& mesh : {Mesh{1, 1, 4}, Mesh{2, 1, 2}, Mesh{1, 2, 2}}) {
    const Outcome expected = in_bf16(mesh, {});
    for (const Wrap& wrap : {Wrap{.ignored = {"h.*.ln_*", "wpe.*"}}, Wrap{.overrides = {{"u1", Keep::step, true}}},
                             Wrap{.overrides = {{"root", Keep::step, true}, {"h.0.*", Keep::visit, true}}}}) {
      const Outcome seen = in_bf16(mesh, wrap);
      EXPECT_EQ(expected.losses, seen.losses) << text_of(mesh);
      EXPECT_EQ(expected.weights, seen.weights) << text_of(mesh);
    }
  }
}

/// Tensors of 1, P − 1, P and P + 1 elements, each a unit, on P ranks.
TEST(Units, TinyTensorsAreUnitsToo) {
  for (const std::int64_t width : {1, 2, 3, 4}) {
    const model::GptConfig model{
        .layers = 2, .width = width, .heads = 1, .vocab_size = 2, .max_seq_len = 7, .ffn_width = 1};
    const Outcome one = run(setup_of({}, {}, 1, model));
    for (const Case& policy : policies)
      expect_close(one, run(setup_of({1, 1, 3}, policy.wrap, 1, model)), policy.name + std::to_string(width));
  }
}

}  // namespace
}  // namespace foreshard::parity
