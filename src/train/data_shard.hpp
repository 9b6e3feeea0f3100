#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/mapped_file.hpp"

namespace foreshard::train {

/// A file of tokens in the layout of llm.c (https://github.com/karpathy/llm.c, llmc/dataloader.h): 256 little-endian
/// int32 (magic, version, token count, zeros), then the tokens: uint16 (magic 20240520, version 1) or uint32 (20240801,
/// version 7).
class DataShard {
 public:
  /// Throws InputError(bad_input) for what is not a whole shard: missing, another format (named if it is one of
  /// llm.c's), unknown version, or a size that does not match the count.
  explicit DataShard(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t size() const { return size_; }         ///< tokens
  int token_bytes() const { return token_bytes_; }    ///< 2 or 4
  std::int64_t operator[](std::int64_t index) const;  ///< token at 0 <= index < size()

  /// Writes tokens [first, first + out.size()) to `out`.
  void read(std::int64_t first, std::span<std::int32_t> out) const;

  struct Contents {
    std::int64_t largest_token = -1;  ///< −1 of an empty shard
    std::uint64_t hash = 0;           ///< of all tokens as they are stored
  };
  /// Reads the whole file.
  Contents contents() const;

  /// The same; throws InputError(bad_input) unless every token is below `vocab_size`.
  Contents check_tokens(std::int64_t vocab_size) const;

 private:
  MappedFile file_;
  std::int64_t size_ = 0;
  int token_bytes_ = 2;
};

/// Writes a shard through a temporary file, so that an interrupted write leaves none. Throws LibraryError if the disk
/// does not take it. Fewer than 2^31 tokens.
void write_shard(const std::filesystem::path& path, std::span<const std::uint16_t> tokens);
void write_shard(const std::filesystem::path& path, std::span<const std::uint32_t> tokens);

/// Files that match a glob pattern, in order of name. Throws InputError(bad_input) if there are none.
std::vector<std::filesystem::path> shard_paths(const std::string& pattern);

}  // namespace foreshard::train
