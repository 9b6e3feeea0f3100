// T5's biases by relative position: buckets as Hugging Face's module has them, and the table's gradient.
#include <tuple>

#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

/// The first distance that has a bucket, in order of distances from −300 on.
using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// T5Attention._relative_position_bucket of transformers 5.24 with torch 2.15, for distances −300 … 300.
const std::vector<std::tuple<bool, std::int64_t, std::int64_t, Runs>> published{
    {true, 32, 128, {{-300, 15}, {-90, 14}, {-63, 13}, {-45, 12}, {-31, 11}, {-22, 10}, {-15, 9}, {-11, 8},
                     {-7, 7},    {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},  {0, 0},
                     {1, 17},    {2, 18},   {3, 19},   {4, 20},   {5, 21},   {6, 22},   {7, 23},  {8, 24},
                     {12, 25},   {16, 26},  {23, 27},  {32, 28},  {46, 29},  {64, 30},  {91, 31}}},
    {false, 32, 128, {{-300, 31}, {-112, 30}, {-98, 29}, {-86, 28}, {-76, 27}, {-66, 26}, {-58, 25}, {-51, 24},
                      {-45, 23},  {-39, 22},  {-34, 21}, {-30, 20}, {-26, 19}, {-23, 18}, {-20, 17}, {-18, 16},
                      {-15, 15},  {-14, 14},  {-13, 13}, {-12, 12}, {-11, 11}, {-10, 10}, {-9, 9},   {-8, 8},
                      {-7, 7},    {-6, 6},    {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},   {0, 0}}},
    {true, 12, 50, {{-300, 5}, {-19, 4}, {-7, 3}, {-2, 2}, {-1, 1}, {0, 0}, {1, 7}, {2, 8}, {3, 9}, {8, 10}, {20, 11}}},
    {false, 7, 20, {{-300, 6}, {-12, 5}, {-7, 4}, {-4, 3}, {-2, 2}, {-1, 1}, {0, 0}}},
    {true, 32, 64, {{-300, 15}, {-49, 14}, {-38, 13}, {-29, 12}, {-22, 11}, {-17, 10}, {-13, 9}, {-10, 8},
                    {-7, 7},    {-6, 6},   {-5, 5},   {-4, 4},   {-3, 3},   {-2, 2},   {-1, 1},  {0, 0},
                    {1, 17},    {2, 18},   {3, 19},   {4, 20},   {5, 21},   {6, 22},   {7, 23},  {8, 24},
                    {11, 25},   {14, 26},  {18, 27},  {23, 28},  {30, 29},  {39, 30},  {50, 31}}}};

TEST(RelativeBias, HasThePublishedBuckets) {
  for (const auto& [both_ways, buckets, max_distance, runs] : published) {
    const RelativeBias o{
        .heads = 1, .seq = 301, .buckets = buckets, .max_distance = max_distance, .both_ways = both_ways};
    Runs seen;
    for (std::int64_t d = -300; d <= 300; ++d)
      if (seen.empty() || seen.back().second != o.bucket(d)) seen.emplace_back(d, o.bucket(d));
    EXPECT_EQ(seen, runs) << buckets << ' ' << max_distance;
  }
}

TEST(RelativeBias, IsTheTablesRowByDistance) {
  const RelativeBias o{.heads = 2, .seq = 4, .buckets = 8, .max_distance = 16};
  Floats table(16), bias(14);
  for (std::int64_t i = 0; i < 16; ++i) table[i] = static_cast<float>(i);
  for (const auto& backend : {make_cpu(), make_reference()}) {
    backend->relative_bias(o, table, bias);
    for (std::int64_t head = 0; head < 2; ++head)
      for (std::int64_t d = -3; d <= 3; ++d)
        EXPECT_EQ(bias[head * 7 + d + 3], table[o.bucket(d) * 2 + head]) << backend->name();
  }
}

RelativeBias shape_of(std::int64_t seq, bool both_ways) {
  return {.heads = 3, .seq = seq, .buckets = 8, .max_distance = 20, .both_ways = both_ways};
}

TEST(RelativeBias, GradientIsThatOfDifferences) {
  const auto reference = make_reference();
  for (const bool both_ways : {false, true})
    for (const std::int64_t seq : {1, 2, 9, 30}) {
      const RelativeBias o = shape_of(seq, both_ways);
      Doubles table = Doubles::random(24, 1), bias(3 * o.distances()), dtable(24);
      const Doubles dbias = Doubles::random(bias.size(), 2);
      const auto loss = [&] { return reference->relative_bias(o, table, bias), dot(dbias, bias); };
      reference->relative_bias_backward(o, false, dbias, dtable);
      EXPECT_LE(error(dtable, differences(table, loss)), difference_error);
      Doubles twice = dtable;
      reference->relative_bias_backward(o, true, dbias, twice);
      for (std::int64_t i = 0; i < 24; ++i) EXPECT_DOUBLE_EQ(twice[i], 2 * dtable[i]);
    }
}

template <class T, class Grad>
void expect_equal_to_reference(Backend& backend, bool accumulate) {
  const RelativeBias o = shape_of(40, true);
  const auto dbias = Array<T>::random(3 * o.distances(), 2);
  auto dtable = Array<Grad>::random(24, 3);
  Doubles truth(dtable);
  backend.relative_bias_backward(o, accumulate, dbias, dtable);
  make_reference()->relative_bias_backward(o, accumulate, Doubles(dbias), truth);
  EXPECT_LE(error(dtable, truth), allowed<Grad>);
}

TEST(RelativeBias, CpuEqualsReference) {
  for (const bool accumulate : {false, true}) expect_equal_to_reference<float, float>(*make_cpu(), accumulate);
}

template <class T>
using RelativeBiasHalves = Halves<T>;
TYPED_TEST_SUITE(RelativeBiasHalves, HalfTypes);

TYPED_TEST(RelativeBiasHalves, EqualReference) {
  this->with_each_gradient([&]<class Grad>(Backend& backend, Grad) {
    for (const bool accumulate : {false, true}) expect_equal_to_reference<TypeParam, Grad>(backend, accumulate);
  });
}

}  // namespace
}  // namespace foreshard::kernels
