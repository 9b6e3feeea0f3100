#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "train/data_shard.hpp"

namespace foreshard::train {

/// Rows of `seq_len` tokens and as many targets; row after row. Target −1 is to be ignored.
struct Batch {
  std::vector<std::int32_t> tokens, targets;
};

/// How a stream is cut and dealt.
struct StreamOptions {
  std::int64_t vocab_size = 0, seq_len = 0;
  bool continues = false;        ///< a row's targets are the seq_len tokens behind it: its continuation
  std::int64_t local_batch = 1;  ///< rows of one micro-batch on one rank
  int micro_batches = 1;
  int rank = 0, world_size = 1;
  bool shuffle = false;    ///< rows in an order of their own in each epoch
  std::uint64_t seed = 0;  ///< of the shuffle
};

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

/// Training rows, a pure function of the step: nothing to save, nothing to restore.
///
/// All windows in order, epoch after epoch, are one endless list, and step s (from 1) takes the next
/// G = world_size · micro_batches · local_batch of it. Of these, rank r has rows [r·R, (r+1)·R), R = micro_batches ·
/// local_batch, and its micro-batch m the rows [m·local_batch, (m+1)·local_batch) of them. So
///   - every window is seen exactly once in each epoch (a step may end one epoch and begin the next);
///   - the rows of a step depend on G alone, not on how it is cut into ranks and micro-batches;
///   - the rows of rank r depend on R alone, not on how it is cut into micro-batches;
///   - two ranks of R rows, in order, have what one rank of 2·R has.
class TokenStream {
 public:
  /// As WindowList; besides throws InputError(bad_input) if there are fewer windows than one step takes.
  TokenStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options);

  /// This rank's rows of step `step` ≥ 1: all micro-batches, one after the other.
  void read(std::int64_t step, Batch& batch) const;

  std::int64_t windows() const { return windows_.size(); }   ///< of one epoch
  std::int64_t tokens() const { return windows_.tokens(); }  ///< in all shards
  std::uint64_t content_hash() const { return windows_.content_hash(); }
  /// The first step that reads the last window of epoch 1.
  std::int64_t steps_per_epoch() const;

 private:
  std::int64_t window(std::int64_t position) const;

  StreamOptions options_;
  WindowList windows_;
};

/// Validation rows, in order, once: batch i (from 0) is rows [i·P·b, (i+1)·P·b), rank r's the r-th b of them. For
/// decoders, every token that has a token before it in its shard is a target exactly once; what is missing at the end
/// is padded with target −1.
class ValidationStream {
 public:
  /// As WindowList. `micro_batches`, `shuffle` and `seed` are not used.
  ValidationStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options);

  std::int64_t batches() const;
  void read(std::int64_t index, Batch& batch) const;
  std::int64_t tokens() const { return windows_.tokens(); }

 private:
  StreamOptions options_;
  WindowList windows_;
};

}  // namespace foreshard::train
