// A machine that computes or sends wrongly is found before the first step.
#include "train/self_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <mutex>

#include "base/clock.hpp"
#include "engine/cpu_executor.hpp"
#include "faulty_communicator.hpp"
#include "train/self_test_parts.hpp"
#include "unit/plan/tiny.hpp"

namespace foreshard::train {
namespace {

using plan::OpKind;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

/// A plan whose collectives and products read `from`, and whose sums leave `to`.
plan::Plan plan_with(const plan::Mesh& mesh, DType from, DType to) {
  plan::Plan plan = plan::build_plan(plan::tiny_graph(), mesh, {});
  for (const plan::Op& op : plan.ops) {
    const bool product = op.kind == OpKind::linear || op.kind == OpKind::linear_weight_grad;
    if (!product && op.kind != OpKind::all_gather && op.kind != OpKind::reduce_scatter && op.kind != OpKind::all_reduce)
      continue;
    for (std::uint32_t i = 0; i < op.input_count + op.output_count; ++i)
      plan.operands[op.first_operand + i].dtype = i < op.input_count || op.kind == OpKind::all_gather ? from : to;
  }
  return plan;
}

constexpr std::int64_t arena_bytes = 1 << 20;

/// What each rank's self-test says where `spoil` is called for the ranks' collectives.
std::vector<SelfTest> results_of(const plan::Plan& plan,
                                 const std::function<void(int, std::string_view, std::span<std::byte>)>& spoil) {
  std::vector<SelfTest> results(static_cast<std::size_t>(plan.mesh.world_size()));
  on_ranks(plan.mesh.world_size(), [&](comm::Communicator& ranks) {
    const int rank = ranks.rank();
    FaultyCommunicator faulty(ranks, [&spoil, rank](auto call, auto result) { spoil(rank, call, result); });
    const std::span<std::byte> arena = ranks.arena(arena_bytes);
    std::ranges::fill(arena, std::byte{7});
    const auto kernels = kernels::make_cpu();
    results[static_cast<std::size_t>(rank)] = self_test(faulty, plan, arena, *kernels);
    EXPECT_TRUE(std::ranges::all_of(arena, [](std::byte byte) { return byte == std::byte{7}; }));
  });
  return results;
}

std::vector<std::string> faults_of(const plan::Plan& plan,
                                   const std::function<void(int, std::string_view, std::span<std::byte>)>& spoil) {
  std::vector<std::string> faults;
  for (const SelfTest& result : results_of(plan, spoil)) faults.push_back(result.fault);
  return faults;
}

const auto sound = [](int, std::string_view, std::span<std::byte>) {};

struct Setting {
  plan::Mesh mesh;
  DType from = DType::f32, to = DType::f32;
};

class SoundMachine : public testing::TestWithParam<Setting> {};

TEST_P(SoundMachine, Passes) {
  const auto& [mesh, from, to] = GetParam();
  const auto results = results_of(plan_with(mesh, from, to), sound);
  for (const SelfTest& result : results) {
    EXPECT_EQ(result.fault, "");
    EXPECT_GT(result.collectives, 0);
    EXPECT_EQ(result.clock_error_ns, results[0].clock_error_ns);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, SoundMachine,
                         testing::Values(Setting{{1, 1, 1}}, Setting{{1, 1, 3}}, Setting{{4, 1, 1}}, Setting{{2, 1, 2}},
                                         Setting{{1, 2, 2}}, Setting{{1, 1, 8}},
                                         Setting{{2, 1, 2}, DType::bf16, DType::bf16},
                                         Setting{{2, 1, 2}, DType::bf16, DType::f32},
                                         Setting{{1, 1, 3}, DType::f16, DType::f32}));

TEST(SelfTest, CoversEachCollectiveKindOfGroupAndType) {
  const auto hybrid = results_of(plan_with({2, 1, 2}, DType::bf16, DType::f32), sound);
  // all_gather, reduce_scatter, all_reduce over replicas, sum_norm, sum_loss; four sizes each.
  EXPECT_EQ(hybrid[0].collectives, 5 * 4);
  // bf16 into f32 and f32 into f32; four lengths of the sum, three forms.
  EXPECT_EQ(hybrid[0].products, 2 * 4 * 3);
}

TEST(SelfTest, FindsOneFlippedBitAndSaysWhere) {
  const plan::Plan plan = plan_with({2, 1, 2}, DType::f32, DType::f32);
  for (const std::string call : {"all_gather", "reduce_scatter", "all_reduce"}) {
    const std::size_t size_bytes = call == "all_gather" ? 2 * 17 * 4 : 17 * 4;
    const auto faults = faults_of(plan, [&](int rank, std::string_view made, std::span<std::byte> result) {
      if (rank == 2 && made == call && result.size() == size_bytes) result[5 * 4 + 2] ^= std::byte{1};
    });
    EXPECT_THAT(faults[2], AllOf(HasSubstr(call + " of 17 f32"), HasSubstr("element 5 of"), HasSubstr("expected")));
    EXPECT_THAT((std::vector{faults[0], faults[1], faults[3]}), Each("")) << call;
  }
}

TEST(SelfTest, FindsSumsInAnotherOrderOnOneRank) {
  const auto faults = faults_of(plan_with({3, 1, 1}, DType::f32, DType::f32),
                                [](int rank, std::string_view call, std::span<std::byte> result) {
                                  float first = 0;
                                  std::memcpy(&first, result.data(), sizeof first);
                                  const bool inexact = first != std::round(first) && result.size() == 4099 * 4;
                                  if (rank == 1 && call == "all_reduce" && inexact) result[0] ^= std::byte{1};
                                });
  EXPECT_EQ(faults[0], "");
  EXPECT_THAT(faults[1], HasSubstr("other bits than on rank 0"));
}

/// The same by an engine that carries out one op after the other.
TEST(SelfTest, OfAnEngineFindsOneFlippedBitToo) {
  plan::Plan plan = plan::build_plan(plan::tiny_graph(), {2, 1, 2}, {});
  plan.arena_bytes += arena_bytes;
  std::vector<SelfTest> results(4);
  on_ranks(4, [&](comm::Communicator& ranks) {
    FaultyCommunicator faulty(ranks, [&](std::string_view call, std::span<std::byte> result) {
      if (ranks.rank() == 2 && call == "reduce_scatter" && result.size() == 17 * 4) result[5 * 4 + 2] ^= std::byte{1};
    });
    const auto kernels = kernels::make_cpu();
    const auto engine =
        engine::on_cpu(*kernels, {})({.mesh = plan.mesh, .communicator = faulty, .device_bytes = plan.arena_bytes});
    results[static_cast<std::size_t>(ranks.rank())] = self_test(faulty, plan, *engine);
  });
  EXPECT_THAT(results[2].fault, AllOf(HasSubstr("reduce_scatter of 17 f32"), HasSubstr("element 5 of")));
  for (const int rank : {0, 1, 3}) EXPECT_EQ(results[static_cast<std::size_t>(rank)].fault, "");
  EXPECT_GT(results[0].collectives, 0);
}

/// A product that reads one element too many where k is no multiple of 32 (as oneDNN issue 5717 did).
void leaky(const kernels::Matmul& shape, kernels::Const a, kernels::Const b, kernels::Mut c) {
  const auto kernels = kernels::make_reference();
  kernels->matmul(shape, a, b, {}, c);
  if (shape.k % 32 == 0 || shape.transpose_a) return;
  for (std::int64_t row = 0; row < shape.m; ++row)
    static_cast<float*>(c.data)[row * shape.n] += 0 * static_cast<const float*>(a.data)[(row + 1) * shape.k];
}

TEST(SelfTest, FindsProductsThatMixRows) {
  const Checked checked = check_products(plan_with({1, 1, 1}, DType::f32, DType::f32), leaky);
  EXPECT_THAT(checked.fault,
              AllOf(HasSubstr("[5, 1] and [1, 19]ᵀ of f32 into f32"), HasSubstr("element (1, 0) is nan")));
}

TEST(SelfTest, FindsProductsThatWriteBesideTheirResult) {
  const Checked checked =
      check_products(plan_with({1, 1, 1}, DType::f32, DType::f32), [](const auto& shape, auto a, auto b, auto c) {
        kernels::make_reference()->matmul(shape, a, b, {}, c);
        static_cast<float*>(c.data)[shape.m * shape.n + 2] = 0;
      });
  EXPECT_THAT(checked.fault, HasSubstr("outside its result"));
}

TEST(SelfTest, BoundsTheDifferenceOfClocks) {
  constexpr std::int64_t hour_ns = 3'600'000'000'000, slack_ns = 60'000'000'000;
  for (const std::int64_t shift_ns : {hour_ns, -hour_ns})
    on_ranks(3, [&](comm::Communicator& ranks) {
      const std::int64_t error_ns =
          clock_error_ns(ranks, [&] { return now_ns() + (ranks.rank() == 1 ? shift_ns : 0); });
      EXPECT_GE(error_ns, hour_ns);
      EXPECT_LE(error_ns, hour_ns + slack_ns);
    });
}

}  // namespace
}  // namespace foreshard::train
