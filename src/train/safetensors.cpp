#include "train/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.hpp"
#include "base/input_file.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Tensors = std::map<std::string, StoredTensor, std::less<>>;

constexpr std::int64_t longest_header = 100'000'000;  // as the format's own reader

struct Type {
  std::string_view name;
  std::int64_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array<Type, 14> types = {{{"F32", 4, DType::f32},
                                         {"F64", 8, DType::f64},
                                         {"BF16", 2, DType::bf16},
                                         {"F16", 2, DType::f16},
                                         {"I64", 8, {}},
                                         {"I32", 4, {}},
                                         {"I16", 2, {}},
                                         {"I8", 1, {}},
                                         {"U64", 8, {}},
                                         {"U32", 4, {}},
                                         {"U16", 2, {}},
                                         {"U8", 1, {}},
                                         {"BOOL", 1, {}},
                                         {"F8_E4M3", 1, {}}}};

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("model.weights: {}: {}", path.string(), why));
}

/// One file's header.
class Header {
 public:
  explicit Header(const fs::path& path) : path_(path) {
    if (const std::string why = why_no_file(path); !why.empty()) refuse(path, why);
    file_bytes_ = static_cast<std::int64_t>(fs::file_size(path));
    json_ = Json::parse(text(), nullptr, false);
    if (!json_.is_object()) refuse(path, "not a safetensors file: its header is not a JSON object");
  }

  Tensors tensors() const {
    Tensors all;
    for (const auto& [name, entry] : json_.items())
      if (name != "__metadata__") all.emplace(name, tensor(name, entry));
    return all;
  }

 private:
  std::string text() {
    std::ifstream file(path_, std::ios::binary);
    std::uint64_t length = 0;
    const auto room = static_cast<std::uint64_t>(std::min(longest_header, file_bytes_ - 8));
    if (!file.read(reinterpret_cast<char*>(&length), sizeof length) || length > room)
      refuse(path_,
             fmt::format("not a whole safetensors file: a header of {} bytes in a file of {}", length, file_bytes_));
    data_at_ = 8 + static_cast<std::int64_t>(length);
    std::string header(length, '\0');
    if (!file.read(header.data(), static_cast<std::streamsize>(length))) refuse(path_, "its header cannot be read");
    return header;
  }

  StoredTensor tensor(const std::string& name, const Json& entry) const {
    const auto fail = [&](std::string_view what) { refuse(path_, fmt::format("tensor {}: {}", name, what)); };
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()) fail("it has no dtype");
    StoredTensor t{.file = path_, .type = entry["dtype"], .shape = counts(entry, "shape", fail)};
    const auto type = std::ranges::find(types, t.type, &Type::name);
    if (type == types.end()) fail(fmt::format("its type {} is unknown", t.type));
    t.dtype = type->dtype;
    const auto offsets = counts(entry, "data_offsets", fail);
    if (offsets.size() != 2 || offsets[0] > offsets[1]) fail("data_offsets are not a begin and an end");
    t.begin_bytes = data_at_ + offsets[0];
    t.size_bytes = offsets[1] - offsets[0];
    if (t.size_bytes != t.elements() * type->bytes)
      fail(fmt::format("{} bytes for {} elements of {}", t.size_bytes, t.elements(), t.type));
    if (t.begin_bytes + t.size_bytes > file_bytes_)
      fail(fmt::format("it ends at byte {} of a file of {}: the file is cut short", t.begin_bytes + t.size_bytes,
                       file_bytes_));
    return t;
  }

  /// Whole numbers whose product is a number of bytes that this file could have.
  template <class Fail>
  std::vector<std::int64_t> counts(const Json& entry, const char* key, const Fail& fail) const {
    std::vector<std::int64_t> values;
    if (!entry.contains(key) || !entry[key].is_array()) fail(fmt::format("it has no {}", key));
    double product = 1;
    for (const Json& value : entry[key]) {
      if (!value.is_number_unsigned() ||
          value.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max() * 4096ULL)
        fail(fmt::format("{} has {}, expected a count", key, value.dump()));
      values.push_back(value.get<std::int64_t>());
      product *= std::max(1.0, static_cast<double>(values.back()));
    }
    if (std::string_view(key) == "shape" && product > static_cast<double>(file_bytes_))
      fail(fmt::format("a shape of {} elements in a file of {} bytes", product, file_bytes_));
    return values;
  }

  fs::path path_;
  std::int64_t file_bytes_ = 0, data_at_ = 0;
  Json json_;
};

/// By file, the tensors that an index says are in it.
std::map<std::string, std::vector<std::string>> files_of_index(const fs::path& path) {
  const Json json = Json::parse(read_whole({path, "", "expected an index of safetensors files"}), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    refuse(path, "not an index of safetensors files: it has no weight_map");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).filename() != fs::path(file.get<std::string>()))
      refuse(path, fmt::format("weight_map says that {} is in {}, expected the name of a file beside the index", tensor,
                               file.dump()));
    files[file].push_back(tensor);
  }
  return files;
}

Tensors read_index(const fs::path& path) {
  Tensors all;
  for (const auto& [file, names] : files_of_index(path)) {
    Tensors tensors = read_safetensors(path.parent_path() / file);
    for (const std::string& name : names) {
      const auto found = tensors.find(name);
      if (found == tensors.end())
        refuse(path, fmt::format("weight_map says that {} is in {}, but it is not", name, file));
      all.insert(tensors.extract(found));
    }
  }
  return all;
}

}  // namespace

std::string_view stored_type(DType type) {
  const auto found = std::ranges::find(types, std::optional(type), &Type::dtype);
  FORESHARD_EXPECT(found != types.end(), "a type that safetensors has");
  return found->name;
}

std::int64_t StoredTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Tensors read_safetensors(const fs::path& path) { return Header(path).tensors(); }

Tensors read_safetensors_model(const fs::path& path) {
  if (!fs::is_directory(path)) return path.extension() == ".json" ? read_index(path) : read_safetensors(path);
  for (const char* name : {"model.safetensors.index.json", "model.safetensors"})
    if (fs::exists(path / name)) return read_safetensors_model(path / name);
  refuse(path, "the folder has neither model.safetensors nor model.safetensors.index.json");
}

void read_bytes(const StoredTensor& tensor, std::int64_t first, std::span<std::byte> to) {
  std::ifstream file(tensor.file, std::ios::binary);
  file.seekg(tensor.begin_bytes + first);
  if (!file.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size())))
    refuse(tensor.file, fmt::format("{} bytes from byte {} on cannot be read", to.size(), tensor.begin_bytes + first));
}

}  // namespace foreshard::train
