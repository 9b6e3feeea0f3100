#include <gtest/gtest.h>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace {

using Floats = Array<float>;

Floats dropped(Backend& backend, const Dropout& o, const Floats& x) {
  Floats y(o.count);
  backend.dropout(o, x, y);
  return y;
}

TEST(Dropout, IsTheSameInBothBackends) {
  const auto cpu = make_cpu(), reference = make_reference();
  const Floats x = Floats::random(5000, 1);
  for (const float probability : {0.0F, 1e-9F, 0.1F, 0.5F, 0.3333333F, 0.999999F, 1.0F}) {
    for (const std::uint64_t first : {0ULL, 1ULL, 3ULL, 4ULL, 66ULL, (1ULL << 34) - 96}) {
      for (const std::int64_t count : {0, 1, 3, 64, 65, 5000}) {
        const Dropout o{count, probability, 42, 7, first};
        EXPECT_EQ(dropped(*cpu, o, x).data, dropped(*reference, o, x).data)
            << probability << " " << first << " " << count;
      }
    }
  }
}

TEST(Dropout, KeepsTheStatedShareAndScalesIt) {
  const auto cpu = make_cpu();
  const std::int64_t count = 1 << 20;
  const Floats x(count, 1.0F);
  for (const double probability : {0.1, 0.5, 0.9}) {
    const Floats y = dropped(*cpu, {count, static_cast<float>(probability), 1, 2}, x);
    const auto kept = static_cast<double>(count - std::ranges::count(y.data, 0.0F));
    const double deviation = std::sqrt(probability * (1 - probability) * static_cast<double>(count));
    EXPECT_NEAR(kept, (1 - probability) * static_cast<double>(count), 5 * deviation);
    EXPECT_FLOAT_EQ(*std::ranges::max_element(y.data), static_cast<float>(1 / (1 - probability)));
  }
}

TEST(Dropout, APartIsThatPartOfTheWhole) {
  const auto cpu = make_cpu();
  Floats x = Floats::random(1000, 1), in_place = x;
  const Floats whole = dropped(*cpu, {1000, 0.3F, 9, 4}, x);
  cpu->dropout({1000, 0.3F, 9, 4}, in_place, in_place);
  EXPECT_EQ(in_place.data, whole.data);
  Floats part(377);
  cpu->dropout({377, 0.3F, 9, 4, 123}, Const{x.data.data() + 123, DType::f32}, part);
  EXPECT_TRUE(std::equal(part.data.begin(), part.data.end(), whole.data.begin() + 123));
}

TEST(Dropout, StreamsAndKeysDiffer) {
  const auto cpu = make_cpu();
  const Floats x(1000, 1.0F);
  const Floats y = dropped(*cpu, {1000, 0.5F, 1, 1}, x);
  EXPECT_NE(y.data, dropped(*cpu, {1000, 0.5F, 1, 2}, x).data);
  EXPECT_NE(y.data, dropped(*cpu, {1000, 0.5F, 2, 1}, x).data);
}

}  // namespace
}  // namespace foreshard::kernels
