#include "train/byte_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint16_t> tokens_of(std::string_view text) { return {text.begin(), text.end()}; }

TEST(Entropy, OfClosedForms) {
  const Entropy constant = entropy_of(tokens_of("aaaaaaaa"));
  EXPECT_EQ(constant.unigram, 0);
  EXPECT_EQ(constant.bigram, 0);
  EXPECT_EQ(constant.distinct, 1);

  const Entropy alternating = entropy_of(tokens_of("abababab"));
  EXPECT_NEAR(alternating.unigram, std::log(2), 1e-15);
  EXPECT_NEAR(alternating.bigram, 0, 1e-15) << "the next letter is certain";

  // Pairs aa, ab, bb, ba once each, every second letter an even guess.
  const Entropy even = entropy_of(tokens_of("aabba"));
  EXPECT_NEAR(even.bigram, std::log(2), 1e-15);
  EXPECT_NEAR(even.unigram, -(0.6 * std::log(0.6) + 0.4 * std::log(0.4)), 1e-15);

  // a is followed by b, c, d; each of those by a.
  EXPECT_NEAR(entropy_of(tokens_of("abacada")).bigram, 0.5 * std::log(3), 1e-15);
}

TEST(Entropy, OfNothing) {
  EXPECT_EQ(entropy_of(std::span<const std::uint16_t>()).unigram, 0);
  EXPECT_EQ(entropy_of(tokens_of("x")).bigram, 0);
}

TEST(Entropy, OfAShardIsThatOfItsTokens) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 10001; ++i) tokens.push_back(static_cast<std::uint16_t>(i * i % 997));
  write_shard(folder / "a.bin", tokens);
  const Entropy of_shard = entropy_of(DataShard(folder / "a.bin")), of_tokens = entropy_of(tokens);
  EXPECT_EQ(of_shard.unigram, of_tokens.unigram);
  EXPECT_EQ(of_shard.bigram, of_tokens.bigram);
}

TEST(SplitAtLine, CutsBehindALineEnd) {
  EXPECT_EQ(split_at_line("aaa\nbbb\nccc\nddd\n", 0.5), 12u);
  EXPECT_EQ(split_at_line("aaa\nbbb\nccc\nddd\n", 0.25), 12u) << "the last line is never lost to training";
  EXPECT_EQ(split_at_line("aaa\nbbbbbbbb", 0.1), 4u);
  EXPECT_EQ(split_at_line("aaaaaaaaaa", 0.2), 8u);
  EXPECT_EQ(split_at_line("aaa\nbbb\n", 0), 8u);
}

class ByteDataTest : public ::testing::Test {
 protected:
  ByteDataOptions options_for(const std::string& text) {
    std::ofstream(folder_ / "text.txt", std::ios::binary) << text;
    return {.text = folder_ / "text.txt", .out = (folder_ / "data/set").string(), .val_fraction = 0.3};
  }
  std::string problem_of(const ByteDataOptions& options, ExitCode code) {
    try {
      make_byte_data(options);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "";
  }
  std::string bytes_of(const std::string& shard) { return content_of(folder_ / shard).substr(1024); }
  TemporaryFolder folder_;
};

TEST_F(ByteDataTest, BothPartsTogetherAreTheText) {
  const std::string text = "one\ntwo\nthr\xe9\xff\nfour\nfive\n";
  const Sidecar sidecar = make_byte_data(options_for(text));
  std::string joined;
  const std::string bytes = bytes_of("data/set_train.bin") + bytes_of("data/set_val.bin");
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    joined += bytes[i];
    EXPECT_EQ(bytes[i + 1], '\0');
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(sidecar.token_count, std::ssize(text));
  EXPECT_EQ(bytes_of("data/set_val.bin").substr(0, 2), std::string("f\0", 2)) << "begins with a line";
}

TEST_F(ByteDataTest, TheSidecarDescribesTheFiles) {
  ByteDataOptions options = options_for("one\ntwo\nthree\n");
  options.licence = "public domain";
  make_byte_data(options);
  const auto sidecar = read_sidecar(sidecar_path(folder_ / "data/set_val.bin"));
  ASSERT_TRUE(sidecar);
  EXPECT_EQ(sidecar->vocab_size, 256);
  EXPECT_EQ(sidecar->tokenizer, "bytes");
  EXPECT_EQ(sidecar->licence, "public domain");
  EXPECT_EQ(sidecar->source, options.text.string());
  ASSERT_EQ(sidecar->shards.size(), 2u);
  EXPECT_EQ(sidecar->shards[0].file, "set_train.bin");
  EXPECT_EQ(sidecar->shards[0].sha256, sha256_of_file(folder_ / "data/set_train.bin"));
  EXPECT_EQ(sidecar->shards[0].tokens + sidecar->shards[1].tokens, 14);
}

TEST_F(ByteDataTest, NothingIsOverwrittenUnasked) {
  ByteDataOptions options = options_for("one\ntwo\nthree\n");
  make_byte_data(options);
  EXPECT_THAT(problem_of(options, ExitCode::usage), HasSubstr("set_train.bin: exists; give another --out, or --force"));
  options.force = true;
  EXPECT_EQ(problem_of(options, ExitCode::usage), "");
}

TEST_F(ByteDataTest, ATextIsNeverOverwrittenByItsTokens) {
  ByteDataOptions options = options_for("one\ntwo\nthree\n");
  make_byte_data(options);
  options.text = folder_ / "data/set_train.bin", options.force = true;
  const std::string before = content_of(options.text);
  EXPECT_THAT(problem_of(options, ExitCode::usage), HasSubstr("is read and would be overwritten"));
  EXPECT_EQ(content_of(options.text), before);
}

TEST_F(ByteDataTest, AFolderThatCannotBeMadeIsNamed) {
  ByteDataOptions options = options_for("one\ntwo\nthree\n");
  options.out = (folder_ / "text.txt/set").string();
  EXPECT_THAT(problem_of(options, ExitCode::usage), HasSubstr("text.txt: no such folder can be made"));
}

TEST_F(ByteDataTest, ASourceOfBytesThatAreNoTextIsKeptReadable) {
  ByteDataOptions options = options_for("one\ntwo\nthree\n");
  options.source = "caf\xE9";
  make_byte_data(options);
  EXPECT_EQ(read_sidecar(folder_ / "data/set.json")->source, "caf\uFFFD");
}

TEST_F(ByteDataTest, WithoutValidationThereIsOneShard) {
  ByteDataOptions options = options_for("one\ntwo\n");
  options.val_fraction = 0;
  EXPECT_EQ(make_byte_data(options).shards.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "data/set_val.bin"));
}

TEST_F(ByteDataTest, BadTextsAreRefused) {
  EXPECT_THAT(problem_of(options_for(""), ExitCode::bad_input), HasSubstr("is empty"));
  ByteDataOptions options = options_for("x");
  options.text = folder_ / "none.txt";
  EXPECT_THAT(problem_of(options, ExitCode::bad_input), HasSubstr("none.txt: cannot be read"));
  options.text = folder_.path();
  EXPECT_THAT(problem_of(options, ExitCode::bad_input), HasSubstr("cannot be read"));
}

TEST(ReadSidecar, TellsMissingFromBroken) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_sidecar(folder / "none.json"));
  std::ofstream(folder / "bad.json") << "{\"vocab_size\": 256}";
  EXPECT_THROW(read_sidecar(folder / "bad.json"), InputError);
  std::ofstream(folder / "worse.json") << "not JSON";
  EXPECT_THROW(read_sidecar(folder / "worse.json"), InputError);
}

}  // namespace
}  // namespace foreshard::train
