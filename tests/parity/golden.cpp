#include "golden.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

namespace foreshard::parity {
namespace {

using nlohmann::json;

train::ParameterGroup group_of(const json& group) {
  train::ParameterGroup result{.patterns = {group.at("pattern").get<std::string>()},
                               .learning_rate_scale = group.value("lr_scale", 1.0)};
  if (group.contains("weight_decay")) result.weight_decay = group.at("weight_decay").get<double>();
  return result;
}

void read_optimizer(const json& o, RunSetup& setup) {
  using model::OpKind;
  setup.optimizer = {o.at("beta1"), o.at("beta2"), o.at("eps"), o.at("weight_decay"), o.at("max_norm")};
  setup.optimizer.momentum = o.value("momentum", 0.0);
  setup.optimizer.nesterov = o.value("nesterov", false);
  setup.optimizer.clip_value = o.value("clip_value", 0.0);
  const auto norm = o.value("norm_type", "2");
  setup.settings.schedule.norm_power = norm == "inf" ? HUGE_VALF : std::stof(norm);
  for (const json& group : o.value("groups", json::array())) setup.optimizer.groups.push_back(group_of(group));
  const auto name = o.value("name", "adamw");
  if (name == "adam") setup.settings.schedule.update = OpKind::adam;
  if (name == "lion") setup.settings.schedule.update = OpKind::lion;
  if (name == "sgd") setup.settings.schedule.update = setup.optimizer.momentum > 0 ? OpKind::sgd_momentum : OpKind::sgd;
}

plan::PartialSteps partial_of(const json& p) {
  plan::PartialSteps steps{.every = p.at("every"), .frozen = p.at("frozen"), .frozen_steps = p.at("frozen_steps")};
  for (const json& block : p.at("skip")) steps.blocks.push_back("h." + std::to_string(block.get<int>()));
  return steps;
}

/// A bias of the keys changes no loss: its gradient is rounding noise, of which Lion takes the sign.
bool moves_by_noise(const json& golden, const std::string& parameter) {
  return golden.at("optimizer").value("name", "") == "lion" && parameter.ends_with("attn.c_attn.bias");
}

}  // namespace

json golden_cases(const std::string& file) {
  return json::parse(std::ifstream(FORESHARD_GOLDEN_DIR "/" + file)).at("cases");
}

RunSetup golden_setup(const json& golden, const model::Config& model, int world, bool reference) {
  const int micro_batches = world == 1 ? golden.at("micro_batches").get<int>() : 1;
  const std::int64_t rows = golden.at("batch").get<int>() * golden.at("micro_batches").get<int>();
  RunSetup setup{.settings = settings_of(model, golden.at("seq"), rows, full_shard(world), micro_batches)};
  setup.seed = golden.at("seed");
  setup.learning_rates = golden.at("learning_rates").get<std::vector<double>>();
  read_optimizer(golden.at("optimizer"), setup);
  if (golden.contains("steps"))
    setup.batch = [steps = golden.at("steps")](std::int64_t step) {
      const json& data = steps.at(static_cast<std::size_t>(step - 1));
      return train::Batch{data.at("tokens"), data.at("targets")};
    };
  if (golden.contains("partial")) setup.settings.partial = partial_of(golden.at("partial"));
  setup.reference = reference;
  setup.dtype = reference ? DType::f64 : DType::f32;
  return setup;
}

void expect_golden(const json& golden, const Outcome& outcome, double tolerance) {
  const auto losses = golden.at("losses").get<std::vector<double>>(),
             norms = golden.at("gradient_norms").get<std::vector<double>>();
  ASSERT_EQ(outcome.losses.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(outcome.losses[i], losses[i], tolerance * losses[i]) << "step " << i + 1;
    EXPECT_NEAR(outcome.grad_norms[i], norms[i], 10 * tolerance * norms[i]) << "step " << i + 1;
  }
  for (const auto& [name, sum] : golden.at("final_sums_of_squares").items()) {
    if (moves_by_noise(golden, name)) continue;
    const auto& values = outcome.weights.at(name);
    const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    EXPECT_NEAR(squares, sum.get<double>(), 10 * tolerance * std::max(1.0, sum.get<double>())) << name;
  }
}

std::string name_of(const json& cases, const Variant& variant) {
  return cases.at(static_cast<std::size_t>(variant.index)).at("name").get<std::string>() + "_" +
         std::to_string(variant.ranks) + "_ranks";
}

}  // namespace foreshard::parity
