#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "train/mapped_file.hpp"

namespace foreshard::train {

/// Sizes of the images of a shard.
struct ImageShape {
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t values() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

/// Images with a class each, in memory.
struct LabelledImages {
  ImageShape shape;
  std::int64_t classes = 0;
  std::vector<std::int32_t> labels;
  std::vector<std::uint8_t> pixels;  ///< image by image, [channels, height, width]
};

/// A file of labelled images: 256 little-endian int32 (magic 20261130, version 1, count, channels, height, width,
/// classes, zeros), then a label of int32 for each image, then its pixels, [channels, height, width] bytes.
class ImageShard {
 public:
  /// Throws InputError(bad_input) for what is not a whole shard, or holds a label that is none of its classes.
  explicit ImageShard(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t size() const { return size_; }
  std::int64_t classes() const { return classes_; }
  const ImageShape& shape() const { return shape_; }
  std::int32_t label(std::int64_t image) const;
  std::span<const std::uint8_t> pixels(std::int64_t image) const;
  std::uint64_t content_hash() const;  ///< of all labels and pixels; reads the whole file

 private:
  MappedFile file_;
  std::int64_t size_ = 0, classes_ = 0;
  ImageShape shape_;
};

/// Whether a file begins as an image shard does.
bool is_image_shard(const std::filesystem::path& path);

/// Writes images [first, first + count) through a temporary file, so that an interrupted write leaves none. Throws
/// LibraryError if the disk does not take it.
void write_image_shard(const std::filesystem::path& path, const LabelledImages& images, std::int64_t first,
                       std::int64_t count);

}  // namespace foreshard::train
