#include "train/token_stream.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/units.hpp"

namespace foreshard::train {

namespace {

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

void check_length(const DataShard& shard, std::int64_t needed, std::string_view formula) {
  if (shard.size() >= needed) return;
  throw InputError(ExitCode::bad_input,
                   fmt::format("{}: too short: one sequence needs {} = {} tokens, there are {}; use more text or a "
                               "shorter sequence",
                               shard.path().string(), formula, count_text(needed), count_text(shard.size())));
}

void resize(Batch& batch, std::int64_t rows, std::int64_t seq_len) {
  const auto size = static_cast<std::size_t>(rows * seq_len);
  batch.tokens.resize(size);
  batch.targets.resize(size);
  batch.images.clear();
}

std::span<std::int32_t> row_of(std::vector<std::int32_t>& values, std::int64_t row, std::int64_t seq_len) {
  return std::span(values).subspan(static_cast<std::size_t>(row * seq_len), static_cast<std::size_t>(seq_len));
}

void fill_row(Batch& batch, std::int64_t row, std::int64_t seq_len, std::int64_t from) {
  const auto rest = static_cast<std::size_t>(from);
  std::ranges::fill(row_of(batch.tokens, row, seq_len).subspan(rest), 0);
  std::ranges::fill(row_of(batch.targets, row, seq_len).subspan(rest), -1);
}

}  // namespace

WindowList::WindowList(const std::vector<std::filesystem::path>& paths, const StreamOptions& options, bool keep_short)
    : first_window_{0}, seq_len_(options.seq_len), continues_(options.continues) {
  FORESHARD_EXPECT(seq_len_ > 0 && options.local_batch > 0 && options.micro_batches > 0, "empty batches");
  for (const auto& path : paths) {
    const DataShard& shard = shards_.emplace_back(path);
    check_length(shard, keep_short ? target_of_first() + 1 : tokens_of(1),
                 continues_ ? "2 * train.seq_len" : "train.seq_len + 1");
    const std::size_t place = shards_.size() - 1;
    if (static_cast<int>(place % static_cast<std::size_t>(options.world_size)) == options.rank)
      content_hash_ += Hash().add(place).add(shard.check_tokens(options.vocab_size).hash).value();
    first_window_.push_back(size() + windows_of(shard, keep_short));
  }
}

/// A window needs all of its targets, or at least one.
std::int64_t WindowList::windows_of(const DataShard& shard, bool keep_short) const {
  const std::int64_t needed = target_of_first() + (keep_short ? 1 : seq_len_);
  return shard.size() < needed ? 0 : (shard.size() - needed) / stride() + 1;
}

std::int64_t WindowList::tokens() const {
  std::int64_t sum = 0;
  for (const DataShard& shard : shards_) sum += shard.size();
  return sum;
}

void WindowList::read(std::int64_t index, std::int64_t row, Batch& batch) const {
  FORESHARD_EXPECT(index >= 0 && index < size(), "no such window");
  const auto next = std::ranges::upper_bound(first_window_, index);
  const DataShard& shard = shards_[static_cast<std::size_t>(next - first_window_.begin() - 1)];
  const std::int64_t first = (index - *std::prev(next)) * stride(), target = first + target_of_first();
  const std::int64_t length = std::min(seq_len_, shard.size() - target);
  const auto count = static_cast<std::size_t>(length);
  const auto read = continues_ ? static_cast<std::size_t>(seq_len_) : count;
  fill_row(batch, row, seq_len_, length);
  shard.read(first, row_of(batch.tokens, row, seq_len_).first(read));
  shard.read(target, row_of(batch.targets, row, seq_len_).first(count));
}

TokenStream::TokenStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options)
    : options_(options), windows_(paths, options, false), order_(options, windows_.size()) {
  const std::int64_t rows = order_.of_step();
  if (windows_.size() >= rows) return;
  throw InputError(ExitCode::bad_input,
                   fmt::format("{}{}: too short: a step of {} sequences of {} tokens needs at least {} tokens, there "
                               "are {} ({} whole sequences); "
                               "use more text, a smaller batch or a shorter sequence",
                               paths.front().string(), paths.size() > 1 ? " and others" : "", count_text(rows),
                               count_text(options_.seq_len), count_text(windows_.tokens_of(rows)),
                               count_text(windows_.tokens()), count_text(windows_.size())));
}

void TokenStream::read(std::int64_t step, Batch& batch) const {
  resize(batch, order_.of_rank(), options_.seq_len);
  for (std::int64_t row = 0; row < order_.of_rank(); ++row) windows_.read(order_.row(step, row), row, batch);
}

std::string TokenStream::size_text() const { return count_text(tokens()) + " tokens"; }

ValidationStream::ValidationStream(const std::vector<std::filesystem::path>& paths, const StreamOptions& options)
    : options_(options), windows_(paths, options, true) {}

std::int64_t ValidationStream::batches() const {
  return divided_up(windows_.size(), options_.world_size * options_.local_batch);
}

void ValidationStream::read(std::int64_t index, Batch& batch) const {
  const std::int64_t first = (index * options_.world_size + options_.rank) * options_.local_batch;
  resize(batch, options_.local_batch, options_.seq_len);
  for (std::int64_t row = 0; row < options_.local_batch; ++row) {
    const bool exists = first + row < windows_.size();
    exists ? windows_.read(first + row, row, batch) : fill_row(batch, row, options_.seq_len, 0);
  }
}

}  // namespace foreshard::train
