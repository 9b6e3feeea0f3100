#include "train/token_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "train/permutation.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Shards in which every token is its own position, counted over all shards: a batch shows where it was read.
class TokenStreamTest : public ::testing::Test {
 protected:
  void make_shards(const std::vector<int>& sizes) {
    std::uint32_t next = 0;
    for (const int size : sizes) {
      std::vector<std::uint32_t> tokens(static_cast<std::size_t>(size));
      std::iota(tokens.begin(), tokens.end(), next);
      next += static_cast<std::uint32_t>(size);
      paths_.push_back(folder_ / ("s" + std::to_string(paths_.size()) + ".bin"));
      write_shard(paths_.back(), tokens);
    }
  }
  static StreamOptions options(int world_size, int micro_batches, std::int64_t local_batch, std::int64_t seq_len) {
    return {.vocab_size = 1 << 20,
            .seq_len = seq_len,
            .local_batch = local_batch,
            .micro_batches = micro_batches,
            .world_size = world_size};
  }
  /// Tokens of a step, the ranks' batches one after the other.
  std::vector<std::int32_t> step_tokens(StreamOptions all, std::int64_t step) {
    std::vector<std::int32_t> tokens;
    Batch batch;
    for (all.rank = 0; all.rank < all.world_size; ++all.rank) {
      TokenStream(paths_, all).read(step, batch);
      for (std::size_t i = 0; i < batch.tokens.size(); ++i) EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
      tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
    }
    return tokens;
  }
  std::string problem_of(const StreamOptions& all) {
    try {
      TokenStream stream(paths_, all);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
  std::vector<std::filesystem::path> paths_;
};

TEST_F(TokenStreamTest, TargetsAreTheNextTokens) {
  make_shards({100});
  Batch batch;
  TokenStream(paths_, options(1, 1, 2, 4)).read(2, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(batch.targets, ElementsAre(9, 10, 11, 12, 13, 14, 15, 16));
}

TEST_F(TokenStreamTest, AContinuationIsWhatFollowsTheRow) {
  make_shards({8, 21});
  StreamOptions all = options(1, 1, 3, 4);
  all.continues = true;
  Batch batch;
  const TokenStream stream(paths_, all);
  EXPECT_EQ(stream.rows(), 1 + 2);
  stream.read(1, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19));
  EXPECT_THAT(batch.targets, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23));
}

TEST_F(TokenStreamTest, AContinuationMayBeShortInValidation) {
  make_shards({8, 22, 4 + 1});
  StreamOptions all = options(1, 1, 5, 4);
  all.continues = true;
  Batch batch;
  const ValidationStream stream(paths_, all);
  EXPECT_EQ(stream.batches(), 1);
  stream.read(0, batch);
  EXPECT_THAT(std::span(batch.tokens).subspan(12, 8), ElementsAre(24, 25, 26, 27, 30, 31, 32, 33));
  EXPECT_THAT(std::span(batch.targets).subspan(12, 8), ElementsAre(28, 29, -1, -1, 34, -1, -1, -1));
}

TEST_F(TokenStreamTest, AContinuationNeedsTwiceTheTokens) {
  make_shards({7});
  StreamOptions all = options(1, 1, 1, 4);
  all.continues = true;
  EXPECT_THAT(problem_of(all), HasSubstr("2 * train.seq_len = 8 tokens, there are 7"));
}

TEST_F(TokenStreamTest, RankReadsAtItsOffsetInsideTheGlobalBatch) {
  make_shards({100});
  StreamOptions second = options(2, 1, 2, 4);
  second.rank = 1;
  Batch batch;
  TokenStream(paths_, second).read(1, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

// 3 shards of 7, 2 and 9 windows of 4, each with a rest that no window covers.
TEST_F(TokenStreamTest, OneEpochSeesEveryWindowOnceAndNothingTwice) {
  make_shards({7 * 4 + 3, 2 * 4 + 1, 9 * 4 + 4});
  std::set<std::int32_t> expected;
  for (const auto& [first, windows] : std::map<int, int>{{0, 7}, {31, 2}, {40, 9}}) {
    for (int i = 0; i < windows; ++i) expected.insert(first + 4 * i);
  }
  for (const bool shuffle : {false, true}) {
    for (const int world_size : {1, 2, 3, 8}) {
      StreamOptions all = options(world_size, 2, 1, 4);
      all.shuffle = shuffle;
      std::multiset<std::int32_t> seen;
      constexpr int windows = 18;
      // As many steps as whole epochs need: G steps are G · windows rows, G epochs.
      const int steps = windows;
      const int epochs = 2 * world_size;
      for (int step = 1; step <= steps; ++step) {
        const auto tokens = step_tokens(all, step);
        for (std::size_t row = 0; row < tokens.size(); row += 4) {
          seen.insert(tokens[row]);
          EXPECT_EQ(tokens[row + 3], tokens[row] + 3);
        }
      }
      EXPECT_EQ(std::set<std::int32_t>(seen.begin(), seen.end()), expected);
      for (const std::int32_t window : expected) EXPECT_EQ(seen.count(window), static_cast<std::size_t>(epochs));
    }
  }
}

TEST_F(TokenStreamTest, FirstEpochIsExactWithoutShuffleAcrossItsEnd) {
  make_shards({10 * 4 + 1});
  const StreamOptions all = options(1, 1, 3, 4);
  EXPECT_EQ(TokenStream(paths_, all).steps_per_epoch(), 4);
  EXPECT_THAT(step_tokens(all, 4), ElementsAre(36, 37, 38, 39, 0, 1, 2, 3, 4, 5, 6, 7))
      << "the next epoch begins at once";
}

TEST_F(TokenStreamTest, StepContentDoesNotDependOnHowItIsCut) {
  make_shards({333, 200});
  for (const bool shuffle : {false, true}) {
    StreamOptions one = options(1, 1, 8, 5);
    one.shuffle = shuffle;
    for (const std::int64_t step : {1, 7, 30}) {
      const auto expected = step_tokens(one, step);
      for (const auto& [ranks, micro, local] :
           {std::tuple{1, 8, 1}, {2, 1, 4}, {2, 4, 1}, {4, 2, 1}, {8, 1, 1}, {4, 1, 2}}) {
        StreamOptions cut = options(ranks, micro, local, 5);
        cut.shuffle = shuffle;
        EXPECT_EQ(step_tokens(cut, step), expected) << ranks << " ranks, " << micro << " of " << local;
      }
    }
  }
}

TEST_F(TokenStreamTest, ShuffleDiffersByEpochAndSeed) {
  make_shards({64 * 4 + 1});
  StreamOptions all = options(1, 1, 64, 4);
  const auto plain = step_tokens(all, 1);
  all.shuffle = true;
  const auto first = step_tokens(all, 1), second = step_tokens(all, 2);
  EXPECT_NE(first, plain);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, step_tokens(all, 1));
  all.seed = 1;
  EXPECT_NE(first, step_tokens(all, 1));
}

TEST_F(TokenStreamTest, ContentHashSeesEachTokenAndTheOrderOfShardsButNotHowManyRanksReadThem) {
  make_shards({40, 30, 50});
  const auto hash = [&](int ranks) {
    std::uint64_t sum = 0;
    StreamOptions all = options(ranks, 1, 1, 4);
    for (all.rank = 0; all.rank < ranks; ++all.rank) sum += TokenStream(paths_, all).content_hash();
    return sum;
  };
  const std::uint64_t before = hash(1);
  for (const int ranks : {2, 3, 5}) EXPECT_EQ(hash(ranks), before) << ranks << " ranks";
  std::swap(paths_[0], paths_[2]);
  EXPECT_NE(hash(1), before) << "the order of shards";
  std::swap(paths_[0], paths_[2]);
  for (const std::size_t changed : {0, 17, 29}) {
    std::vector<std::uint32_t> tokens(30);
    std::iota(tokens.begin(), tokens.end(), 40);
    ++tokens[changed];
    write_shard(paths_[1], tokens);
    EXPECT_NE(hash(1), before) << "token " << changed;
  }
}

TEST_F(TokenStreamTest, TooShortSaysWhatIsNeededAndWhatIsThere) {
  make_shards({40});
  EXPECT_EQ(problem_of(options(3, 1, 3, 4)), "") << "36 + 1 tokens are enough";
  const std::string text = problem_of(options(2, 1, 5, 4));
  EXPECT_THAT(
      text, HasSubstr("s0.bin: too short: a step of 10 sequences of 4 tokens needs at least 41 tokens, there are 40"));
  EXPECT_THAT(problem_of(options(1, 1, 1, 64)),
              HasSubstr("one sequence needs train.seq_len + 1 = 65 tokens, there are 40"));
}

TEST_F(TokenStreamTest, TokensBeyondTheVocabularyAreFoundByOneRank) {
  make_shards({40, 40});
  StreamOptions all = options(2, 1, 1, 4);
  all.vocab_size = 79;
  EXPECT_EQ(problem_of(all), "") << "rank 0 looks at the first shard";
  all.rank = 1;
  EXPECT_THAT(problem_of(all), HasSubstr("s1.bin: holds token 79"));
}

TEST_F(TokenStreamTest, ValidationCountsEveryTargetOnce) {
  make_shards({4 * 5 + 3, 2});
  for (const int world_size : {1, 2, 3}) {
    std::multiset<std::int32_t> targets;
    StreamOptions all = options(world_size, 1, 2, 5);
    for (all.rank = 0; all.rank < world_size; ++all.rank) {
      const ValidationStream stream(paths_, all);
      EXPECT_EQ(stream.batches(), (6 + 2 * world_size - 1) / (2 * world_size));
      Batch batch;
      for (std::int64_t i = 0; i < stream.batches(); ++i) {
        stream.read(i, batch);
        ASSERT_EQ(batch.targets.size(), 10u);
        for (const std::int32_t target : batch.targets) {
          if (target != -1) targets.insert(target);
        }
      }
    }
    std::multiset<std::int32_t> expected;
    for (int target = 1; target < 23; ++target) expected.insert(target);
    expected.insert(24);
    EXPECT_EQ(targets, expected);
  }
}

TEST_F(TokenStreamTest, ValidationPadsTheLastWindow) {
  make_shards({7});
  Batch batch;
  ValidationStream(paths_, options(1, 1, 3, 4)).read(0, batch);
  EXPECT_THAT(batch.tokens, ElementsAre(0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(batch.targets, ElementsAre(1, 2, 3, 4, 5, 6, -1, -1, -1, -1, -1, -1));
}

TEST(Permuted, IsAPermutationOfAnySize) {
  for (std::int64_t size = 1; size <= 130; ++size) {
    std::vector<bool> hit(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t to = permuted(i, size, 42, 3);
      ASSERT_TRUE(to >= 0 && to < size);
      ASSERT_FALSE(hit[static_cast<std::size_t>(to)]);
      hit[static_cast<std::size_t>(to)] = true;
    }
  }
}

// Chi-square of where each of 16 indices goes, over 16,000 counters: 255 − 31 degrees of freedom; 4.5 standard
// deviations.
TEST(Permuted, SendsEachIndexEverywhereEquallyOften) {
  constexpr int size = 16, counters = 16000;
  std::vector<int> hits(size * size);
  for (int counter = 0; counter < counters; ++counter) {
    for (int i = 0; i < size; ++i)
      ++hits[static_cast<std::size_t>(i * size + permuted(i, size, 7, static_cast<std::uint64_t>(counter)))];
  }
  double chi_square = 0;
  for (const int hit : hits) chi_square += (hit - counters / size) * (hit - counters / size) / (1.0 * counters / size);
  EXPECT_LT(chi_square, 225 + 4.5 * std::sqrt(2 * 225.0));
}

}  // namespace
}  // namespace foreshard::train
