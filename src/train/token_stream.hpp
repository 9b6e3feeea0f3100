#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/data_shard.hpp"
#include "train/data_stream.hpp"
#include "train/row_order.hpp"

namespace foreshard::train {

/// Several shards as one list of windows. No window crosses from one shard to the next, so each shard's last few tokens
/// are not used. For decoders, window w of a shard is its tokens [w·T, w·T + T], T = seq_len, as in llm.c: the target
/// of each token is the next. For encoders with decoders (`continues`), it is [2·w·T, 2·w·T + 2·T): the first half is
/// read, the second half is the target.
class WindowList {
 public:
  /// Opens the shards and checks the tokens of every world_size-th of them (together the ranks check each once). Throws
  /// InputError(bad_input) if a shard is not one, holds a token ≥ vocab_size, or is shorter than one window.
  /// With `keep_short`, a last window that is not full counts too.
  WindowList(const std::vector<std::filesystem::path>& paths, const StreamOptions& options, bool keep_short);

  std::int64_t size() const { return first_window_.back(); }
  std::int64_t tokens() const;
  /// Of the shards that this rank has checked, by their places in the list. The sum over the ranks is a hash of all
  /// tokens, whatever the number of ranks.
  std::uint64_t content_hash() const { return content_hash_; }
  /// Tokens that so many windows of one shard are made of.
  std::int64_t tokens_of(std::int64_t windows) const { return (windows - 1) * stride() + seq_len_ + target_of_first(); }
  /// Row `row` of the batch becomes window `index`; tokens beyond a short window are 0, their targets −1.
  void read(std::int64_t index, std::int64_t row, Batch& batch) const;

 private:
  std::int64_t target_of_first() const { return continues_ ? seq_len_ : 1; }
  std::int64_t stride() const { return continues_ ? 2 * seq_len_ : seq_len_; }
  std::int64_t windows_of(const DataShard& shard, bool keep_short) const;

  std::vector<DataShard> shards_;
  std::vector<std::int64_t> first_window_;  ///< by shard, and the total
  std::int64_t seq_len_;
  bool continues_;
  std::uint64_t content_hash_ = 0;
};

/// Rows are windows.
class TokenStream final : public TrainingData {
 public:
  /// As WindowList; besides throws InputError(bad_input) if there are fewer windows than one step takes.
  TokenStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options);

  void read(std::int64_t step, Batch& batch) const override;
  std::int64_t rows() const override { return windows_.size(); }
  std::int64_t tokens() const { return windows_.tokens(); }  ///< in all shards
  std::uint64_t content_hash() const override { return windows_.content_hash(); }
  std::int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  std::string size_text() const override;

 private:
  StreamOptions options_;
  WindowList windows_;
  RowOrder order_;
};

/// For decoders, every token that has a token before it in its shard is a target exactly once; what is missing at the
/// end is padded with target −1.
class ValidationStream final : public ValidationData {
 public:
  /// As WindowList. `micro_batches`, `shuffle` and `seed` are not used.
  ValidationStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options);

  std::int64_t batches() const override;
  void read(std::int64_t index, Batch& batch) const override;
  std::int64_t tokens() const { return windows_.tokens(); }

 private:
  StreamOptions options_;
  WindowList windows_;
};

}  // namespace foreshard::train
