#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/hf_config.hpp"

namespace foreshard::model {
namespace {

const ProfileConfig small{.units = {{.name = "a",
                                     .parameters = 30,
                                     .forward_flops = 100,
                                     .backward_flops = 250,
                                     .activation_bytes = 10,
                                     .output_values = 7},
                                    {.name = "b", .parameters = 5, .forward_flops = 3, .output_values = 2}},
                          .head = {.name = "head", .parameters = 4, .output_values = 3}};

TEST(Profile, EachUnitIsOneOperatorWithTheProfilesFacts) {
  const Graph graph = build_profile(small, {6, 1});
  EXPECT_EQ(graph.parameter_count(), 39);
  ASSERT_EQ(graph.units.size(), 3U);
  const Operator& first = graph.operators.front();
  EXPECT_EQ(first.kind, OpKind::opaque);
  EXPECT_EQ(flops(first.kind, first.sizes), 600);
  EXPECT_EQ(flops(OpKind::opaque_backward, first.sizes), 1500);
  EXPECT_EQ(graph[first.outputs[0]].elements, 6 * 7);
  EXPECT_EQ(graph[first.outputs[1]].elements, 6 * 3) << "10 bytes, in words";
  EXPECT_EQ(graph.operators[1].outputs.size(), 1U) << "keeps nothing";
}

TEST(Profile, OfTheFileShippedIsReadWithItsCounts) {
  const HfModel model = read_hf_config(FORESHARD_TEST_DATA "/configs/profile-example.json");
  const auto& profile = std::get<ProfileConfig>(model.config);
  ASSERT_EQ(profile.units.size(), 21U);
  EXPECT_EQ(profile.units[0].backward_flops, 480'000'000) << "twice forward";
  EXPECT_EQ(profile.units[20].name, "stage.19");
  EXPECT_EQ(profile.units[20].backward_flops, 50'000'000'000);
  EXPECT_EQ(build(model.config, {2, 1}).parameter_count(), 9408 + 20 * 450'000'000LL + 7'000'000);
  EXPECT_THAT(model.source.notes, testing::Contains("units[0]: backward_flops not given: 2·240000000"));
}

TEST(Profile, NamesTheUnitThatIsWrong) {
  using testing::Contains;
  using testing::HasSubstr;
  ProfileConfig wrong = small;
  wrong.units[1].output_values = 0;
  wrong.part_of_peak = 2;
  EXPECT_THAT(problems(wrong, {1, 1}),
              testing::ElementsAre(HasSubstr("b has 5 parameters"), HasSubstr("part_of_peak is 2")));
  EXPECT_THAT(problems(ProfileConfig{.head = {.name = "head"}}, {1, 1}), Contains(HasSubstr("0 units")));
  EXPECT_THAT(problems(small, {std::int64_t{1} << 60, 1}), Contains(HasSubstr("at most")));
}

}  // namespace
}  // namespace foreshard::model
