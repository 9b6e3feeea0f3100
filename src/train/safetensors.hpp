#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace foreshard::train {

/// A tensor in a safetensors file, row-major.
struct StoredTensor {
  std::filesystem::path file;
  std::string type;            ///< as the file says: "F32", "BF16", …
  std::optional<DType> dtype;  ///< absent where it is none of our numbers
  std::vector<std::int64_t> shape;
  std::int64_t begin_bytes = 0, size_bytes = 0;  ///< in the file
  std::int64_t elements() const;
};

/// What safetensors calls a type of numbers: "F32", "BF16", …
std::string_view stored_type(DType type);

/// The tensors of one file, by name, from its header alone (https://github.com/huggingface/safetensors). Throws
/// InputError(bad_input) where it cannot be read or its header is not that of a whole file.
std::map<std::string, StoredTensor, std::less<>> read_safetensors(const std::filesystem::path& path);

/// The same of a model: a file, the index of several (model.safetensors.index.json), or a folder with either.
std::map<std::string, StoredTensor, std::less<>> read_safetensors_model(const std::filesystem::path& path);

/// Bytes [first, first + to.size()) of a tensor. Throws InputError(bad_input) if the file does not give them.
void read_bytes(const StoredTensor& tensor, std::int64_t first, std::span<std::byte> to);

}  // namespace foreshard::train
