#include "train/image_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/error.hpp"
#include "train/image_data.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImageStreamTest : public ::testing::Test {
 protected:
  /// Image n of all shards has label n mod 3 and pixels n, n + 1, ….
  void make_shards(const std::vector<int>& sizes, const ImageShape& shape = {1, 4, 4}) {
    int next = 0;
    for (const int size : sizes) {
      LabelledImages images{.shape = shape, .classes = 3, .labels = {}, .pixels = {}};
      for (int n = 0; n < size; ++n, ++next) {
        images.labels.push_back(next % 3);
        for (int i = 0; i < shape.values(); ++i) images.pixels.push_back(static_cast<std::uint8_t>(next + i));
      }
      paths_.push_back(folder_ / ("s" + std::to_string(paths_.size()) + ".bin"));
      write_image_shard(paths_.back(), images, 0, size);
    }
  }
  template <class F>
  static std::string problem_of(F f) {
    try {
      f();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  std::string problem_of(const PatchShape& patch, const StreamOptions& options) {
    return problem_of([&] { ImageStream(paths_, options, patch); });
  }
  void append(const std::string& text) { std::ofstream(paths_.back(), std::ios::app | std::ios::binary) << text; }

  TemporaryFolder folder_;
  std::vector<std::filesystem::path> paths_;
  PatchShape patch_{.patches = 4, .values = 4, .classes = 3};
};

float value(int byte) { return static_cast<float>(byte) / 127.5F - 1; }

TEST(Patches, GoRowByRowThroughChannels) {
  const ImageShape shape{2, 3, 4};  // the last row is left over
  std::vector<std::uint8_t> pixels(24);
  for (std::size_t i = 0; i < 24; ++i) pixels[i] = static_cast<std::uint8_t>(i);
  ASSERT_EQ(patch_side(shape, {.patches = 2, .values = 8, .classes = 1}), 2);
  std::vector<float> patches(16);
  cut_patches(shape, 2, pixels, patches.data());
  std::vector<float> expected;
  for (const int at : {0, 1, 4, 5, 12, 13, 16, 17, 2, 3, 6, 7, 14, 15, 18, 19}) expected.push_back(value(at));
  EXPECT_EQ(patches, expected);
}

TEST_F(ImageStreamTest, RanksAndMicroBatchesDivideAStep) {
  make_shards({5, 6});
  const StreamOptions one{.local_batch = 8};
  Batch whole;
  ImageStream(paths_, one, patch_).read(1, whole);
  EXPECT_EQ(whole.targets[7], 7 % 3);
  EXPECT_EQ(whole.images[7 * 16], value(7));
  std::vector<std::int32_t> targets;
  for (int rank = 0; rank < 2; ++rank) {
    Batch part;
    ImageStream(paths_, {.local_batch = 2, .micro_batches = 2, .rank = rank, .world_size = 2}, patch_).read(1, part);
    targets.insert(targets.end(), part.targets.begin(), part.targets.end());
    EXPECT_TRUE(part.tokens.empty());
  }
  EXPECT_EQ(targets, whole.targets);
}

TEST_F(ImageStreamTest, AnEpochSeesEveryImageOnce) {
  make_shards({5, 7});
  for (const bool shuffle : {false, true}) {
    const ImageStream stream(paths_, {.local_batch = 4, .shuffle = shuffle, .seed = 3}, patch_);
    EXPECT_EQ(stream.steps_per_epoch(), 3);
    std::multiset<float> seen;
    Batch batch;
    for (int step = 1; step <= 3; ++step) {
      stream.read(step, batch);
      for (std::size_t row = 0; row < 4; ++row) seen.insert(batch.images[row * 16]);
    }
    std::multiset<float> expected;
    for (int n = 0; n < 12; ++n) expected.insert(value(n));
    EXPECT_EQ(seen, expected);
  }
}

TEST_F(ImageStreamTest, ValidationPadsItsEnd) {
  make_shards({5});
  const ImageValidation data(paths_, {.local_batch = 3}, patch_);
  EXPECT_EQ(data.batches(), 2);
  Batch batch;
  data.read(1, batch);
  EXPECT_THAT(batch.targets, ElementsAre(0, 1, -1));
}

TEST_F(ImageStreamTest, ContentHashesAddUpToThatOfOneRank) {
  make_shards({5, 4, 3});
  const std::uint64_t one = ImageStream(paths_, {}, patch_).content_hash();
  std::uint64_t sum = 0;
  for (int rank = 0; rank < 2; ++rank)
    sum += ImageStream(paths_, {.rank = rank, .world_size = 2}, patch_).content_hash();
  EXPECT_EQ(sum, one);
}

TEST_F(ImageStreamTest, RefusesWhatTheModelDoesNotTake) {
  make_shards({5});
  EXPECT_EQ(problem_of(patch_, {}), "");
  EXPECT_THAT(problem_of({.patches = 9, .values = 4, .classes = 3}, {}), HasSubstr("1 x 4 x 4"));
  EXPECT_THAT(problem_of({.patches = 4, .values = 4, .classes = 2}, {}), HasSubstr("has 3 classes"));
  EXPECT_THAT(problem_of(patch_, {.local_batch = 6}), HasSubstr("a step takes 6 images, there are 5"));
}

TEST_F(ImageStreamTest, RefusesWhatIsNoShard) {
  make_shards({5});
  append("x");
  EXPECT_THAT(problem_of(patch_, {}), HasSubstr("is too long"));
  std::filesystem::resize_file(paths_[0], 1100);
  EXPECT_THAT(problem_of(patch_, {}), HasSubstr("is truncated"));
  EXPECT_TRUE(is_image_shard(paths_[0]));
  std::ofstream(paths_[0]) << "some text";
  EXPECT_THAT(problem_of(patch_, {}), HasSubstr("not a shard of images"));
  EXPECT_FALSE(is_image_shard(paths_[0]));
}

TEST_F(ImageStreamTest, RefusesALabelThatIsNoClass) {
  LabelledImages images{.shape = {1, 1, 1}, .classes = 2, .labels = {0, 2}, .pixels = {1, 2}};
  paths_.push_back(folder_ / "bad.bin");
  write_image_shard(paths_[0], images, 0, 2);
  EXPECT_THAT(problem_of({.patches = 1, .values = 1, .classes = 2}, {}), HasSubstr("image 1 has label 2"));
}

TEST_F(ImageStreamTest, ReadsCifar) {
  const auto file = folder_ / "batch.bin";
  std::string record(3073, '\7');
  record[0] = '\4';
  std::ofstream(file, std::ios::binary) << record << record;
  const LabelledImages images = read_cifar({file, file}, false);
  EXPECT_THAT(images.labels, ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(images.shape, (ImageShape{3, 32, 32}));
  EXPECT_EQ(std::ssize(images.pixels), 4 * 3072);
  EXPECT_THAT(problem_of([&] { read_cifar({file}, true); }), HasSubstr("no multiple of CIFAR's 3074"));
}

TEST_F(ImageStreamTest, ReadsIdx) {
  const auto images = folder_ / "images", labels = folder_ / "labels";
  using namespace std::string_literals;
  std::ofstream(images, std::ios::binary) << "\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2"s
                                          << "abcd";
  std::ofstream(labels, std::ios::binary) << "\0\0\x08\x01\0\0\0\2"s
                                          << "\1\5";
  const LabelledImages read = read_idx(images, labels);
  EXPECT_EQ(read.shape, (ImageShape{1, 1, 2}));
  EXPECT_THAT(read.labels, ElementsAre(1, 5));
  EXPECT_EQ(read.classes, 6);
  EXPECT_THAT(read.pixels, ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(problem_of([&] { read_idx(labels, images); }), HasSubstr("expected a file of 3 dimensions"));
}

TEST_F(ImageStreamTest, SyntheticImagesAreAFunctionOfTheSeed) {
  const LabelledImages a = synthetic_images(6, 2, 8, 1), b = synthetic_images(6, 2, 8, 1),
                       c = synthetic_images(6, 2, 8, 2);
  EXPECT_EQ(a.pixels, b.pixels);
  EXPECT_NE(a.pixels, c.pixels);
  EXPECT_THAT(a.labels, ElementsAre(0, 1, 0, 1, 0, 1));
  const auto files = write_image_data(a, (folder_ / "set").string(), 0.34, false);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(ImageShard(files[0]).size(), 4);
  EXPECT_EQ(ImageShard(files[1]).size(), 2);
  EXPECT_THAT(problem_of([&] { write_image_data(a, (folder_ / "set").string(), 0, false); }), HasSubstr("exists"));
}

}  // namespace
}  // namespace foreshard::train
