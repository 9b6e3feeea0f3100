#include "train/image_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/units.hpp"

namespace foreshard::train {
namespace {

void expect_fitting(const ImageShard& shard, const PatchShape& patch) {
  const ImageShape& s = shard.shape();
  if (patch_side(s, patch) == 0)
    throw InputError(
        ExitCode::bad_input,
        fmt::format("{}: its images are {} x {} x {} (channels, height, width), of which no square patches make the "
                    "model's {} patches of {} values; use a model for such images, or make the data set anew",
                    shard.path().string(), s.channels, s.height, s.width, patch.patches, patch.values));
  if (shard.classes() > patch.classes)
    throw InputError(ExitCode::bad_input, fmt::format("{}: has {} classes, but the model tells {} apart",
                                                      shard.path().string(), shard.classes(), patch.classes));
}

}  // namespace

std::int64_t patch_side(const ImageShape& image, const PatchShape& patch) {
  const auto side = static_cast<std::int64_t>(
      std::llround(std::sqrt(static_cast<double>(patch.values) / static_cast<double>(image.channels))));
  const bool fits = side > 0 && side * side * image.channels == patch.values &&
                    (image.height / side) * (image.width / side) == patch.patches;
  return fits ? side : 0;
}

void cut_patches(const ImageShape& image, std::int64_t side, std::span<const std::uint8_t> pixels, float* patches) {
  for (std::int64_t top = 0; top + side <= image.height; top += side)
    for (std::int64_t left = 0; left + side <= image.width; left += side)
      for (std::int64_t channel = 0; channel < image.channels; ++channel)
        for (std::int64_t y = top; y < top + side; ++y)
          for (std::int64_t x = left; x < left + side; ++x) {
            const std::int64_t at = (channel * image.height + y) * image.width + x;
            *patches++ = static_cast<float>(pixels[static_cast<std::size_t>(at)]) / 127.5F - 1;
          }
}

ImageList::ImageList(const std::vector<std::filesystem::path>& paths, const StreamOptions& options,
                     const PatchShape& patch)
    : patch_(patch), first_{0} {
  for (const auto& path : paths) {
    const ImageShard& shard = shards_.emplace_back(path);
    expect_fitting(shard, patch);
    const std::size_t place = shards_.size() - 1;
    if (static_cast<int>(place % static_cast<std::size_t>(options.world_size)) == options.rank)
      content_hash_ += Hash().add(place).add(shard.content_hash()).value();
    first_.push_back(size() + shard.size());
  }
}

void ImageList::resize(Batch& batch, std::int64_t rows) const {
  batch.tokens.clear();
  batch.targets.resize(static_cast<std::size_t>(rows));
  batch.images.resize(static_cast<std::size_t>(rows * values()));
}

void ImageList::read(std::int64_t index, std::int64_t row, Batch& batch) const {
  FORESHARD_EXPECT(index >= 0 && index < size(), "no such image");
  const auto next = std::ranges::upper_bound(first_, index);
  const ImageShard& shard = shards_[static_cast<std::size_t>(next - first_.begin() - 1)];
  const std::int64_t image = index - *std::prev(next);
  batch.targets[static_cast<std::size_t>(row)] = shard.label(image);
  cut_patches(shard.shape(), patch_side(shard.shape(), patch_), shard.pixels(image),
              batch.images.data() + row * values());
}

void ImageList::clear(std::int64_t row, Batch& batch) const {
  batch.targets[static_cast<std::size_t>(row)] = -1;
  std::fill_n(batch.images.data() + row * values(), values(), 0.0F);
}

ImageStream::ImageStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options,
                         const PatchShape& patch)
    : images_(paths, options, patch), order_(options, images_.size()) {
  if (images_.size() >= order_.of_step()) return;
  throw InputError(ExitCode::bad_input,
                   fmt::format("{}{}: too short: a step takes {} images, there are {}; use more images or a smaller "
                               "batch",
                               paths.front().string(), paths.size() > 1 ? " and others" : "",
                               count_text(order_.of_step()), count_text(images_.size())));
}

void ImageStream::read(std::int64_t step, Batch& batch) const {
  images_.resize(batch, order_.of_rank());
  for (std::int64_t row = 0; row < order_.of_rank(); ++row) images_.read(order_.row(step, row), row, batch);
}

std::string ImageStream::size_text() const { return count_text(images_.size()) + " images"; }

ImageValidation::ImageValidation(const std::vector<std::filesystem::path>& paths, const StreamOptions& options,
                                 const PatchShape& patch)
    : options_(options), images_(paths, options, patch) {}

std::int64_t ImageValidation::batches() const {
  const std::int64_t rows = options_.world_size * options_.local_batch;
  return (images_.size() + rows - 1) / rows;
}

void ImageValidation::read(std::int64_t index, Batch& batch) const {
  const std::int64_t first = (index * options_.world_size + options_.rank) * options_.local_batch;
  images_.resize(batch, options_.local_batch);
  for (std::int64_t row = 0; row < options_.local_batch; ++row)
    first + row < images_.size() ? images_.read(first + row, row, batch) : images_.clear(row, batch);
}

}  // namespace foreshard::train
