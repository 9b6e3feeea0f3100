#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/entropy.hpp"

namespace foreshard::train {

/// What a data set says of itself, in PREFIX.json beside its shards PREFIX_train.bin and PREFIX_val.bin.
struct Sidecar {
  struct Shard {
    std::string file, sha256;  ///< name without folder; digest of the whole file
    std::int64_t tokens = 0;
  };
  std::int64_t vocab_size = 0;
  std::string tokenizer;  ///< "bytes"
  std::string source, licence;
  std::int64_t token_count = 0;
  Entropy entropy;  ///< of the whole text
  std::vector<Shard> shards;
};

/// PREFIX.json for PREFIX_train.bin, PREFIX_val.bin or PREFIX.bin.
std::filesystem::path sidecar_path(const std::filesystem::path& shard);

/// Throws LibraryError if the file cannot be written.
void write_sidecar(const std::filesystem::path& path, const Sidecar& sidecar);

/// Nothing if there is no such file. Throws InputError(bad_input) if it is not a sidecar.
std::optional<Sidecar> read_sidecar(const std::filesystem::path& path);

/// SHA-256 of a file's bytes. Throws InputError(bad_input) if it cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace foreshard::train
