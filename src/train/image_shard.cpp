#include "train/image_shard.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.hpp"
#include "base/hash_of_bytes.hpp"
#include "base/units.hpp"

namespace foreshard::train {
namespace {

constexpr std::int32_t magic = 20261130, version = 1;
using Header = std::array<std::int32_t, 256>;
constexpr std::int64_t header_bytes = sizeof(Header);
constexpr std::int64_t label_bytes = sizeof(std::int32_t);
constexpr std::int64_t most_values = 1 << 26;  ///< of an image

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}", path.string(), why));
}

Header header_of(const MappedFile& file) {
  Header header{};
  const auto bytes = file.bytes();
  std::memcpy(header.data(), bytes.data(), std::min(bytes.size(), sizeof header));
  if (header[0] != magic)
    refuse(file.path(), fmt::format("not a shard of images: it begins with {}, expected {}; make one with "
                                    "`foreshard-data images`",
                                    header[0], magic));
  if (header[1] != version)
    refuse(file.path(), fmt::format("is a shard of images of version {}, expected version {}", header[1], version));
  return header;
}

void check_sizes(const MappedFile& file, std::int64_t count, const ImageShape& shape, std::int64_t classes) {
  const bool positive = count > 0 && shape.channels > 0 && shape.height > 0 && shape.width > 0 && classes > 0;
  const double values =
      static_cast<double>(shape.channels) * static_cast<double>(shape.height) * static_cast<double>(shape.width);
  if (!positive || values > static_cast<double>(most_values))
    refuse(file.path(), fmt::format("its header says {} images of {} x {} x {} and {} classes", count, shape.channels,
                                    shape.height, shape.width, classes));
  const std::int64_t expected = header_bytes + count * (label_bytes + shape.values());
  const auto seen = static_cast<std::int64_t>(file.bytes().size());
  if (seen != expected)
    refuse(file.path(), fmt::format("{}: its header says {} images of {} bytes, so {} bytes are expected, but it has "
                                    "{}; copy or make it again",
                                    seen < expected ? "is truncated" : "is too long", count_text(count), shape.values(),
                                    count_text(expected), count_text(seen)));
}

}  // namespace

ImageShard::ImageShard(const std::filesystem::path& path) : file_(path, "a shard of images") {
  const Header header = header_of(file_);
  size_ = header[2];
  shape_ = {header[3], header[4], header[5]};
  classes_ = header[6];
  check_sizes(file_, size_, shape_, classes_);
  for (std::int64_t image = 0; image < size_; ++image)
    if (label(image) < 0 || label(image) >= classes_)
      refuse(path, fmt::format("image {} has label {}, but there are {} classes", image, label(image), classes_));
}

std::int32_t ImageShard::label(std::int64_t image) const {
  std::int32_t value = 0;
  std::memcpy(&value, file_.bytes().data() + header_bytes + image * label_bytes, sizeof value);
  return value;
}

std::span<const std::uint8_t> ImageShard::pixels(std::int64_t image) const {
  FORESHARD_EXPECT(image >= 0 && image < size_, "no such image in " + path().string());
  const auto* all = reinterpret_cast<const std::uint8_t*>(file_.bytes().data() + header_bytes + size_ * label_bytes);
  return {all + image * shape_.values(), static_cast<std::size_t>(shape_.values())};
}

std::uint64_t ImageShard::content_hash() const { return hash_of_bytes(file_.bytes().subspan(header_bytes)); }

bool is_image_shard(const std::filesystem::path& path) {
  std::int32_t first = 0;
  std::ifstream file(path, std::ios::binary);
  return std::filesystem::is_regular_file(path) && file.read(reinterpret_cast<char*>(&first), sizeof first) &&
         first == magic;
}

void write_image_shard(const std::filesystem::path& path, const LabelledImages& images, std::int64_t first,
                       std::int64_t count) {
  const ImageShape& s = images.shape;
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const Header header{
      magic, version, number(count), number(s.channels), number(s.height), number(s.width), number(images.classes)};
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary);
  const auto put = [&](const void* from, std::int64_t bytes) { file.write(static_cast<const char*>(from), bytes); };
  put(header.data(), header_bytes);
  put(images.labels.data() + first, count * label_bytes);
  put(images.pixels.data() + first * s.values(), count * s.values());
  file.close();
  if (!file) throw LibraryError(fmt::format("writing {}: {}", part.string(), std::strerror(errno)));
  std::filesystem::rename(part, path);
}

}  // namespace foreshard::train
