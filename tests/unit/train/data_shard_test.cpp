#include "train/data_shard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <numeric>

#include "base/error.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string problem_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "";
}

class DataShardTest : public ::testing::Test {
 protected:
  std::filesystem::path file_of(std::int32_t magic, std::int32_t version, std::int32_t count, std::size_t token_bytes) {
    std::vector<std::int32_t> header(256, 0);
    header[0] = magic, header[1] = version, header[2] = count;
    std::ofstream file(folder_ / "x.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(header.data()), 1024);
    file << std::string(token_bytes, '\1');
    return folder_ / "x.bin";
  }
  std::string problem_of_file(const std::filesystem::path& path) {
    return problem_of([&] { DataShard shard(path); });
  }
  TemporaryFolder folder_;
};

TEST_F(DataShardTest, SixteenBitTokensComeBack) {
  const std::vector<std::uint16_t> tokens{0, 1, 65535, 7};
  write_shard(folder_ / "a.bin", tokens);
  const DataShard shard(folder_ / "a.bin");
  EXPECT_EQ(shard.size(), 4);
  EXPECT_EQ(shard.token_bytes(), 2);
  EXPECT_EQ(shard[2], 65535);
  EXPECT_EQ(shard.contents().largest_token, 65535);
  std::vector<std::int32_t> read(2);
  shard.read(2, read);
  EXPECT_THAT(read, ElementsAre(65535, 7));
}

TEST_F(DataShardTest, ThirtyTwoBitTokensComeBack) {
  const std::vector<std::uint32_t> tokens{0, 128255, 3};
  write_shard(folder_ / "a.bin", tokens);
  const DataShard shard(folder_ / "a.bin");
  EXPECT_EQ(shard.token_bytes(), 4);
  EXPECT_EQ(shard[1], 128255);
}

// The bytes themselves, as llm.c reads them: little-endian magic 20240520 = 0x0134d888, version, count, zeros.
TEST_F(DataShardTest, TheFileIsWhatLlmCReads) {
  write_shard(folder_ / "a.bin", std::vector<std::uint16_t>{0x0102, 0x0304});
  const std::string bytes = content_of(folder_ / "a.bin");
  ASSERT_EQ(bytes.size(), 1024u + 2 * 2);
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x88\xd8\x34\x01\1\0\0\0\2\0\0\0", 12));
  EXPECT_EQ(bytes.find_first_not_of('\0', 12), 1024u);
  EXPECT_EQ(bytes.substr(1024), "\2\1\4\3");
}

TEST_F(DataShardTest, NoPartIsLeftBehind) {
  write_shard(folder_ / "a.bin", std::vector<std::uint16_t>{1});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.bin.part"));
}

TEST_F(DataShardTest, ATokenBeyondTheVocabularyIsFound) {
  write_shard(folder_ / "a.bin", std::vector<std::uint16_t>{3, 256, 5});
  const DataShard shard(folder_ / "a.bin");
  EXPECT_EQ(problem_of([&] { shard.check_tokens(257); }), "");
  const std::string text = problem_of([&] { shard.check_tokens(256); });
  EXPECT_THAT(text, HasSubstr("a.bin: holds token 256"));
  EXPECT_THAT(text, HasSubstr("model.vocab_size = 256"));
  EXPECT_THAT(text, HasSubstr("at least 257"));
}

TEST_F(DataShardTest, AHugeTokenIsNotTakenForANegativeOne) {
  write_shard(folder_ / "a.bin", std::vector<std::uint32_t>{4000000000u});
  const DataShard shard(folder_ / "a.bin");
  EXPECT_EQ(shard[0], 4000000000);
  EXPECT_THAT(problem_of([&] { shard.check_tokens(50257); }), HasSubstr("holds token 4000000000"));
}

TEST_F(DataShardTest, TruncatedSaysExpectedAndSeen) {
  const std::string text = problem_of_file(file_of(20240520, 1, 1000, 1998));
  EXPECT_THAT(text, HasSubstr("x.bin: is truncated: its header says 1,000 tokens of 2 bytes, so 3,024 bytes are "
                              "expected, but it has 3,022"));
  EXPECT_THAT(problem_of_file(file_of(20240801, 7, 10, 20)), HasSubstr("1,064 bytes are expected, but it has 1,044"));
  EXPECT_THAT(problem_of_file(file_of(20240520, 1, 10, 21)), HasSubstr("is too long"));
  EXPECT_THAT(problem_of_file(file_of(20240520, 1, -1, 0)), HasSubstr("its header says -1 tokens"));
}

TEST_F(DataShardTest, OtherFormatsAreNamed) {
  EXPECT_THAT(problem_of_file(file_of(20240522, 1, 0, 0)),
              HasSubstr("this is an evaluation set of llm.c (magic 20240522)"));
  EXPECT_THAT(problem_of_file(file_of(20240326, 3, 0, 0)), HasSubstr("a model file of llm.c"));
  EXPECT_THAT(problem_of_file(file_of(12345, 1, 0, 0)), HasSubstr("not a shard of tokens: it begins with 12345"));
  EXPECT_THAT(problem_of_file(file_of(20240801, 1, 0, 0)), HasSubstr("is a shard of version 1, expected version 7"));
}

TEST_F(DataShardTest, WhatIsNoFileIsRefused) {
  EXPECT_THAT(problem_of_file("/no/such/file.bin"), HasSubstr("/no/such/file.bin: cannot be opened (No such file"));
  EXPECT_THAT(problem_of_file(folder_.path()), HasSubstr("is not a regular file"));
  std::ofstream(folder_ / "empty.bin").close();
  EXPECT_THAT(problem_of_file(folder_ / "empty.bin"), HasSubstr("is empty"));
  std::ofstream(folder_ / "short.bin") << "hello";
  EXPECT_THAT(problem_of_file(folder_ / "short.bin"), HasSubstr("is 5 bytes long, shorter than the header"));
}

TEST_F(DataShardTest, APipeIsRefusedRatherThanWaitedFor) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(problem_of_file(folder_ / "pipe"), HasSubstr("is not a regular file"));
}

TEST_F(DataShardTest, GlobFindsShardsInOrder) {
  for (const char* name : {"b_train_1.bin", "b_train_0.bin", "b_val.bin"}) std::ofstream(folder_ / name).close();
  const auto paths = shard_paths((folder_ / "b_train*.bin").string());
  EXPECT_THAT(paths, ElementsAre(folder_ / "b_train_0.bin", folder_ / "b_train_1.bin"));
  EXPECT_THAT(problem_of([&] { shard_paths((folder_ / "c*.bin").string()); }), HasSubstr("no file matches"));
}

}  // namespace
}  // namespace foreshard::train
