#include "train/image_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/output_files.hpp"
#include "base/random.hpp"

namespace foreshard::train {
namespace {

using Bytes = std::span<const std::uint8_t>;

Bytes bytes_of(const MappedFile& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.bytes().data()), file.bytes().size()};
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}", path.string(), why));
}

std::int64_t classes_of(const std::vector<std::int32_t>& labels) {
  return labels.empty() ? 1 : std::int64_t{*std::ranges::max_element(labels)} + 1;
}

/// An IDX file of bytes: its extents, and where its data begin.
struct Idx {
  std::vector<std::int64_t> extents;
  std::size_t header = 0;
};

Idx idx_of(const MappedFile& file) {
  const Bytes b = bytes_of(file);
  if (b.size() < 4 || b[0] != 0 || b[1] != 0 || b[2] != 8 || b[3] == 0 || b.size() < 4U + 4U * b[3])
    refuse(file.path(), "is not an IDX file of bytes (0, 0, 8, number of dimensions)");
  Idx idx{.extents = {}, .header = 4U + 4U * b[3]};
  std::int64_t total = 1;
  for (std::size_t at = 4; at < idx.header; at += 4) {
    const std::int64_t extent = std::int64_t{b[at]} << 24 | b[at + 1] << 16 | b[at + 2] << 8 | b[at + 3];
    idx.extents.push_back(extent);
    total = std::min<std::int64_t>(INT32_MAX * std::int64_t{64}, total * extent);
  }
  if (static_cast<std::int64_t>(b.size() - idx.header) != total)
    refuse(file.path(), fmt::format("its header says {} bytes, it has {}", total, b.size() - idx.header));
  return idx;
}

double smooth_pattern(std::uint64_t key, const ImageShape& s, std::int64_t at) {
  const std::int64_t x = at % s.width, y = at / s.width % s.height, channel = at / (s.width * s.height);
  const std::int64_t cell = (channel * s.height + y / 4 * 4) * s.width + x / 4 * 4;
  return normal(key, static_cast<std::uint64_t>(cell));
}

void check_free(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return;
  throw InputError(ExitCode::usage,
                   fmt::format("{}: exists; give another --out, or --force to overwrite it", file.string()));
}

}  // namespace

LabelledImages read_cifar(const std::vector<std::filesystem::path>& files, bool fine) {
  LabelledImages all{.shape = {3, 32, 32}, .classes = fine ? 100 : 10, .labels = {}, .pixels = {}};
  const std::size_t labels = fine ? 2 : 1, record = labels + static_cast<std::size_t>(all.shape.values());
  for (const auto& path : files) {
    const MappedFile file(path, "a binary file of CIFAR");
    const Bytes bytes = bytes_of(file);
    if (bytes.size() % record != 0)
      refuse(path, fmt::format("has {} bytes, which is no multiple of CIFAR's {} for an image", bytes.size(), record));
    for (std::size_t at = 0; at < bytes.size(); at += record) {
      const int label = bytes[at + labels - 1];
      if (label >= all.classes) refuse(path, fmt::format("holds class {}, expected below {}", label, all.classes));
      all.labels.push_back(label);
      const Bytes image = bytes.subspan(at + labels, record - labels);
      all.pixels.insert(all.pixels.end(), image.begin(), image.end());
    }
  }
  return all;
}

LabelledImages read_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  const MappedFile image_file(images, "an IDX file of images"), label_file(labels, "an IDX file of labels");
  const Idx image = idx_of(image_file), label = idx_of(label_file);
  if (image.extents.size() != 3 || label.extents.size() != 1 || label.extents[0] != image.extents[0])
    refuse(images, fmt::format("expected a file of 3 dimensions beside one of as many labels ({})", labels.string()));
  const Bytes pixels = bytes_of(image_file).subspan(image.header), names = bytes_of(label_file).subspan(label.header);
  LabelledImages all{.shape = {1, image.extents[1], image.extents[2]},
                     .classes = 1,
                     .labels = {names.begin(), names.end()},
                     .pixels = {pixels.begin(), pixels.end()}};
  all.classes = classes_of(all.labels);
  return all;
}

LabelledImages synthetic_images(std::int64_t count, std::int64_t classes, std::int64_t side, std::uint64_t seed) {
  LabelledImages all{.shape = {3, side, side}, .classes = classes, .labels = {}, .pixels = {}};
  for (std::int64_t image = 0; image < count; ++image) {
    const std::int64_t label = image % classes;
    all.labels.push_back(static_cast<std::int32_t>(label));
    const std::uint64_t pattern = Hash().add(seed).add(label).value(), noise = Hash().add(seed).add(~image).value();
    for (std::int64_t at = 0; at < all.shape.values(); ++at) {
      const double value = 128 + 40 * smooth_pattern(pattern, all.shape, at) + 30 * normal(noise, at);
      all.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
    }
  }
  return all;
}

std::vector<std::filesystem::path> write_image_data(const LabelledImages& images, const std::string& prefix,
                                                    double val_fraction, bool force) {
  const auto count = std::ssize(images.labels);
  const auto held_out = static_cast<std::int64_t>(static_cast<double>(count) * val_fraction);
  std::vector<std::filesystem::path> files{prefix + "_train.bin"};
  if (held_out > 0) files.emplace_back(prefix + "_val.bin");
  if (!force) std::ranges::for_each(files, check_free);
  make_folder(files[0].parent_path());
  write_image_shard(files[0], images, 0, count - held_out);
  if (held_out > 0) write_image_shard(files[1], images, count - held_out, held_out);
  return files;
}

}  // namespace foreshard::train
