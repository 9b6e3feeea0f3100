#pragma once
#include <vector>

#include "train/data_stream.hpp"
#include "train/image_shard.hpp"
#include "train/row_order.hpp"

namespace foreshard::train {

/// What a model makes of an image: so many square patches of so many values, of one of so many classes.
struct PatchShape {
  std::int64_t patches = 0, values = 0, classes = 0;
};

/// Side of a square patch of an image, in pixels; 0 if the image has no such patches.
std::int64_t patch_side(const ImageShape& image, const PatchShape& patch);

/// The patches of an image, row by row, each [channels, side, side]; a byte b becomes b/127.5 − 1. What is left over at
/// the right and at the bottom is not used.
void cut_patches(const ImageShape& image, std::int64_t side, std::span<const std::uint8_t> pixels, float* patches);

/// Several shards of images of one shape as one list.
class ImageList {
 public:
  /// Opens the shards, checks each and hashes every world_size-th. Throws InputError(bad_input) for what is no shard of
  /// images that the model takes.
  ImageList(const std::vector<std::filesystem::path>& paths, const StreamOptions& options, const PatchShape& patch);

  std::int64_t size() const { return first_.back(); }
  std::uint64_t content_hash() const { return content_hash_; }
  void resize(Batch& batch, std::int64_t rows) const;
  /// Row `row` of the batch becomes image `index`.
  void read(std::int64_t index, std::int64_t row, Batch& batch) const;
  /// A row without an image: zeros, and target −1.
  void clear(std::int64_t row, Batch& batch) const;

 private:
  std::int64_t values() const { return patch_.patches * patch_.values; }

  PatchShape patch_;
  std::vector<ImageShard> shards_;
  std::vector<std::int64_t> first_;  ///< by shard, and the total
  std::uint64_t content_hash_ = 0;
};

class ImageStream final : public TrainingData {
 public:
  /// As ImageList; besides throws InputError(bad_input) if there are fewer images than one step takes.
  ImageStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options, const PatchShape& patch);

  void read(std::int64_t step, Batch& batch) const override;
  std::int64_t rows() const override { return images_.size(); }
  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  std::uint64_t content_hash() const override { return images_.content_hash(); }
  std::string size_text() const override;

 private:
  ImageList images_;
  RowOrder order_;
};

class ImageValidation final : public ValidationData {
 public:
  ImageValidation(const std::vector<std::filesystem::path>& paths, const StreamOptions& options,
                  const PatchShape& patch);

  std::int64_t batches() const override;
  void read(std::int64_t index, Batch& batch) const override;

 private:
  StreamOptions options_;
  ImageList images_;
};

}  // namespace foreshard::train
