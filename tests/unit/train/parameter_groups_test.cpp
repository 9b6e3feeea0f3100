#include "train/parameter_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.hpp"
#include "model/gpt.hpp"

namespace foreshard::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const model::Graph& graph() {
  static const model::Graph gpt = model::build_gpt(
      {.layers = 2, .width = 8, .heads = 2, .vocab_size = 5, .max_seq_len = 4}, {.batch = 1, .seq = 4});
  return gpt;
}

std::map<std::string, exec::ParameterRule> rules_of(const std::string& text) {
  const auto rules = parameter_rules(graph(), parse_parameter_groups(text), 0.1);
  std::map<std::string, exec::ParameterRule> by_name;
  for (std::size_t i = 0; i < rules.size(); ++i) by_name[graph().parameters[i].name] = rules[i];
  return by_name;
}

std::string problem_of(const std::string& text) {
  try {
    rules_of(text);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(ParameterGroups, WithoutAnyMatricesDecayAndTheRestDoesNot) {
  for (const char* text : {"", " ; "})
    for (const auto& [name, rule] : rules_of(text)) {
      const bool matrix = name.ends_with(".weight") && name.find("ln_") == std::string::npos;
      EXPECT_EQ(rule.weight_decay, matrix ? 0.1 : 0) << name;
      EXPECT_EQ(rule.learning_rate_scale, 1) << name;
    }
}

TEST(ParameterGroups, TheFirstThatMatchesCounts) {
  auto rules = rules_of("*.bias, *.ln_?.*:weight_decay=0.5 ; h.1.*:lr_scale=0.25; wte.*:lr_scale=2,weight_decay=0");
  EXPECT_EQ(rules["h.1.ln_1.weight"].weight_decay, 0.5);
  EXPECT_EQ(rules["h.1.ln_1.weight"].learning_rate_scale, 1) << "its second match does not count";
  EXPECT_EQ(rules["h.1.mlp.c_fc.weight"].learning_rate_scale, 0.25);
  EXPECT_EQ(rules["h.1.mlp.c_fc.weight"].weight_decay, 0.1) << "what a group does not say stays";
  EXPECT_EQ(rules["wte.weight"].learning_rate_scale, 2);
  EXPECT_EQ(rules["wte.weight"].weight_decay, 0);
  EXPECT_EQ(rules["wpe.weight"].weight_decay, 0.1);
  EXPECT_EQ(rules["ln_f.bias"].weight_decay, 0.5);
  EXPECT_EQ(rules["ln_f.weight"].weight_decay, 0) << "its name has no dot before ln_";
}

TEST(ParameterGroups, APatternThatMatchesNothingIsNamed) {
  EXPECT_THAT(problem_of("wte.weights:lr_scale=1"),
              AllOf(HasSubstr("`wte.weights` matches no parameter"), HasSubstr("Did you mean `wte.weight`?")));
  EXPECT_THAT(problem_of("*.bias,*.gamma:weight_decay=0"), HasSubstr("`*.gamma` matches no parameter"));
}

TEST(ParameterGroups, AMalformedGroupIsQuotedWithAnExample) {
  struct Case {
    const char *text, *says;
  };
  for (const auto& [text, says] :
       {Case{"*.bias", "there is no `:`"}, Case{"*.bias:decay", "`decay` is not KEY=VALUE"},
        Case{"*.bias:weight_decai=0", "Did you mean `weight_decay`?"},
        Case{"*.bias:lr_scale=-1", "`-1` is not a number of at least 0"},
        Case{"*.bias:lr_scale=nan", "`nan` is not a number"}, Case{":lr_scale=1", "a pattern is empty"}})
    EXPECT_THAT(problem_of(text), AllOf(HasSubstr(says), HasSubstr(text), HasSubstr("for example"))) << text;
}

}  // namespace
}  // namespace foreshard::train
