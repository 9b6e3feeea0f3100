// Which route products and attention of bf16 take: chosen by shape, and then kept.
#include "engine/product_routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/half.hpp"
#include "base/random.hpp"
#include "unit/plan/tiny.hpp"

namespace foreshard::engine {
namespace {

using testing::AnyOf;
using testing::StartsWith;

const std::string attention = "attention bf16 2x8x2x8 kv2 causal";  // of the tiny plan

plan::Plan plan_in(DType dtype) { return plan::tiny_plan({.precision = {.parameters = dtype}}); }

TEST(ProductRoutes, AreMeasuredForEachShapeOfBf16) {
  const auto cpu = kernels::make_cpu();
  const KernelChoices choices = measure_routes(plan_in(DType::bf16), *cpu);
  ASSERT_TRUE(choices.contains(attention));
  for (const auto& [name, choice] : choices) {
    EXPECT_THAT(name, AnyOf(StartsWith("matmul bf16 "), attention));
    EXPECT_THAT(choice, AnyOf("native", "widened")) << name;
  }
  EXPECT_TRUE(measure_routes(plan_in(DType::f16), *cpu).empty());
}

/// Of the tiny plan's shape.
std::vector<std::uint16_t> attend(kernels::Backend& cpu) {
  constexpr std::size_t rows = 16, inner = 16;
  std::vector<BFloat16> qkv(3 * rows * inner), y(rows * inner);
  for (std::size_t i = 0; i < qkv.size(); ++i) qkv[i] = BFloat16(normal(1, i));
  std::vector<float> log_sum_exp(2 * rows);
  cpu.attention({.batch = 2, .seq = 8, .heads = 2, .width = 8}, {qkv.data(), DType::bf16}, {y.data(), DType::bf16},
                {log_sum_exp.data(), DType::f32});
  std::vector<std::uint16_t> bits;
  for (const BFloat16& x : y) bits.push_back(x.bits);
  return bits;
}

TEST(ProductRoutes, AreThoseOfTheChoices) {
  const auto cpu = kernels::make_cpu();
  const plan::Plan plan = plan_in(DType::bf16);
  std::vector<std::uint16_t> by_route[2];
  for (const auto route : {kernels::MatmulRoute::native, kernels::MatmulRoute::widened}) {
    cpu->set_attention_routes({.otherwise = route});
    by_route[static_cast<int>(route)] = attend(*cpu);
  }
  const auto& [native, widened] = by_route;
  ASSERT_NE(native, widened);
  use_routes({{attention, "native"}}, plan, *cpu);
  EXPECT_EQ(attend(*cpu), native);
  use_routes({{attention, "widened"}}, plan, *cpu);
  EXPECT_EQ(attend(*cpu), widened);
  use_routes({{attention, "native"}}, plan, *cpu);
  use_routes({}, plan, *cpu);
  EXPECT_EQ(attend(*cpu), widened);
}

}  // namespace
}  // namespace foreshard::engine
