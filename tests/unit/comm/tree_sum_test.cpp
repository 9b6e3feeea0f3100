#include "comm/tree_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "contract/comm/elements.hpp"

namespace foreshard::comm::testing {

namespace {

/// One sum of `members` parts of `count` elements, laid out `shift` elements behind a cache line.
struct Case {
  int members = 1;
  std::int64_t count = 0;
  std::int64_t shift = 0;
  bool accumulate = false;
  bool past_cache = false;
};

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::vector<T> elements(int rank, std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(element<T>(rank, i));
  return values;
}

template <class T>
void expect_tree(const Case& c) {
  std::vector<std::vector<T>> parts;
  std::vector<const void*> pointers;
  std::vector<int> members;
  for (int m = 0; m < c.members; ++m) {
    members.push_back(m);
    parts.push_back(elements<T>(m, c.count));
  }
  for (const auto& part : parts) pointers.push_back(part.data());
  const std::int64_t margin = 70;
  const std::vector<T> before = elements<T>(1000, c.count + 2 * margin);
  std::vector<T> out = before;
  T* target = out.data() + c.shift;
  tree_sum({.parts = pointers,
            .part_type = dtype_of<T>,
            .out = target,
            .out_type = dtype_of<T>,
            .count = c.count,
            .accumulate = c.accumulate,
            .past_cache = c.past_cache});
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(out.size()); ++i) {
    const bool inside = i >= c.shift && i < c.shift + c.count;
    const T right = inside ? expected_sum<T>(members, i - c.shift, c.accumulate, before[i]) : before[i];
    ASSERT_TRUE(same_bits(out[i], right))
        << "element " << i - c.shift << " of " << c.count << ", " << c.members << " members, shift " << c.shift << ", "
        << name_of(dtype_of<T>) << ": " << wide(out[i]) << ", not " << wide(right);
  }
}

template <class T>
void expect_trees() {
  for (const int members : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 33}) {
    for (const std::int64_t count : {0, 1, 15, 16, 127, 128, 129, 1000}) {
      for (const std::int64_t shift : {0, 1, 13}) {
        for (const bool accumulate : {false, true}) {
          for (const bool past_cache : {false, true}) expect_tree<T>({members, count, shift, accumulate, past_cache});
        }
      }
    }
  }
}

TEST(TreeSum, FollowsTheCanonicalTreeInFloat) { expect_trees<float>(); }
TEST(TreeSum, FollowsTheCanonicalTreeInDouble) { expect_trees<double>(); }
TEST(TreeSum, FollowsTheCanonicalTreeInBfloat16) { expect_trees<Bf16>(); }
TEST(TreeSum, FollowsTheCanonicalTreeInFloat16) { expect_trees<F16>(); }
TEST(TreeSum, IsExactInIntegers) {
  expect_trees<std::int32_t>();
  expect_trees<std::int64_t>();
}

TEST(TreeSum, OrderShowsInTheBits) {
  const float large = 0x1p24F, one = 1.0F;
  const std::vector<const void*> parts{&large, &one, &one, &one};
  float sum = 0;
  tree_sum({.parts = parts, .out = &sum, .count = 1});
  EXPECT_EQ(sum,
            0x1p24F + 2.0F);  // (2^24 + 1) + (1 + 1); one after the other gives 2^24, the exact sum rounds to 2^24 + 4
}

TEST(TreeSum, StagesOfAlignedGroupsGiveTheSameBits) {
  constexpr std::int64_t count = 999;
  std::vector<std::vector<float>> parts, groups(4, std::vector<float>(count));
  std::vector<const void*> all, group_sums;
  for (int m = 0; m < 16; ++m) parts.push_back(elements<float>(m, count));
  for (const auto& part : parts) all.push_back(part.data());
  std::vector<float> at_once(count), staged(count);
  tree_sum({.parts = all, .out = at_once.data(), .count = count});
  for (int g = 0; g < 4; ++g) {
    tree_sum({.parts = std::span<const void* const>(all).subspan(static_cast<std::size_t>(4 * g), 4),
              .out = groups[g].data(),
              .count = count});
    group_sums.push_back(groups[g].data());
  }
  tree_sum({.parts = group_sums, .out = staged.data(), .count = count});
  EXPECT_EQ(std::memcmp(at_once.data(), staged.data(), count * sizeof(float)), 0);
}

TEST(TreeSum, ResultMayBeOneOfTheParts) {
  for (const int members : {1, 2, 3, 4, 8}) {
    std::vector<std::vector<float>> parts;
    std::vector<const void*> pointers;
    std::vector<int> ranks;
    for (int m = 0; m < members; ++m) {
      parts.push_back(elements<float>(m, 300));
      ranks.push_back(m);
    }
    for (const auto& part : parts) pointers.push_back(part.data());
    tree_sum({.parts = pointers, .out = parts.back().data(), .count = 300});
    for (std::int64_t i = 0; i < 300; ++i)
      ASSERT_EQ(parts.back()[i], expected_sum<float>(ranks, i, false, 0.0F)) << members << " members";
  }
}

TEST(TreeSum, RoundsHalvesOnce) {
  // 1 + 2^-9 + 2^-9 = 1 + 2^-8 is a tie in bf16 and goes to 1; accumulated onto 2^-7 the exact 1 + 2^-7 + 2^-8 ties up
  // to 1 + 2^-6.
  const Bf16 one = narrow<Bf16>(1.0F), small = narrow<Bf16>(0x1p-9F);
  const std::vector<const void*> parts{&one, &small, &small};
  Bf16 sum{0}, onto = narrow<Bf16>(0x1p-7F);
  float wide_sum = 0;
  tree_sum({.parts = parts, .part_type = DType::bf16, .out = &sum, .out_type = DType::bf16, .count = 1});
  tree_sum({.parts = parts, .part_type = DType::bf16, .out = &wide_sum, .out_type = DType::f32, .count = 1});
  tree_sum({.parts = parts,
            .part_type = DType::bf16,
            .out = &onto,
            .out_type = DType::bf16,
            .count = 1,
            .accumulate = true});
  EXPECT_EQ(wide(sum), 1.0F);
  EXPECT_EQ(wide_sum, 1.0F + 0x1p-8F);
  EXPECT_EQ(wide(onto), 1.0F + 0x1p-6F);
}

TEST(TreeSum, IntegersWrap) {
  const std::int32_t largest = std::numeric_limits<std::int32_t>::max(), one = 1;
  const std::vector<const void*> parts{&largest, &one};
  std::int32_t sum = 0;
  tree_sum({.parts = parts, .part_type = DType::i32, .out = &sum, .out_type = DType::i32, .count = 1});
  EXPECT_EQ(sum, std::numeric_limits<std::int32_t>::min());
}

TEST(TreeSum, RefusesTypesThatDoNotBelongTogether) {
  const float x = 1;
  const std::vector<const void*> parts{&x};
  double sum = 0;
  EXPECT_THROW(tree_sum({.parts = parts, .part_type = DType::f32, .out = &sum, .out_type = DType::f64, .count = 1}),
               ContractError);
  EXPECT_THROW(tree_sum({.parts = {}, .out = &sum, .count = 1}), ContractError);
}

/// The pattern of CommunicatorContract.HalvesAreSummedInFloat at more members than a machine has ranks.
TEST(TreeSum, HalvesAreSummedInFloat) {
  for (const int members : {2, 16, 64, 1000}) {
    const Bf16 one = narrow<Bf16>(1.0F), small = narrow<Bf16>(0x1p-9F);
    std::vector<const void*> parts(static_cast<std::size_t>(members), &small);
    parts[0] = &one;
    const float right = 1.0F + static_cast<float>(members - 1) * 0x1p-9F;
    float exact = 0;
    Bf16 near{0};
    tree_sum({.parts = parts, .part_type = DType::bf16, .out = &exact, .count = 1});
    tree_sum({.parts = parts, .part_type = DType::bf16, .out = &near, .out_type = DType::bf16, .count = 1});
    EXPECT_EQ(exact, right);
    EXPECT_LE(std::abs(wide(near) - right), right * 0x1p-8F);
  }
}

}  // namespace

}  // namespace foreshard::comm::testing
