#include "train/entropy.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace foreshard::train {

namespace {

using Counts = std::unordered_map<std::uint64_t, std::int64_t>;

/// −Σ p ln p of a table of counts.
double entropy_of_counts(const Counts& counts, std::int64_t total) {
  double sum = 0;
  for (const auto& [token, count] : counts) sum += static_cast<double>(count) * std::log(static_cast<double>(count));
  return total == 0 ? 0 : std::log(static_cast<double>(total)) - sum / static_cast<double>(total);
}

/// Feeds tokens one by one; H(b | a) = H(a, b) − H(a), a over all tokens but the last.
class EntropyCounter {
 public:
  void add(std::uint64_t token) {
    if (size_ > 0) ++pairs_[last_ << 32 | token];
    ++singles_[token];
    last_ = token;
    ++size_;
  }
  Entropy result() const {
    if (size_ == 0) return {};
    Counts firsts = singles_;
    if (--firsts[last_] == 0) firsts.erase(last_);
    const double bigram = entropy_of_counts(pairs_, size_ - 1) - entropy_of_counts(firsts, size_ - 1);
    return {entropy_of_counts(singles_, size_), std::max(0.0, bigram), std::ssize(singles_)};
  }

 private:
  Counts singles_, pairs_;
  std::uint64_t last_ = 0;
  std::int64_t size_ = 0;
};

}  // namespace

Entropy entropy_of(std::span<const std::uint16_t> tokens) {
  EntropyCounter counter;
  for (const std::uint16_t token : tokens) counter.add(token);
  return counter.result();
}

Entropy entropy_of(const DataShard& shard) {
  EntropyCounter counter;
  std::vector<std::int32_t> tokens(4096);
  for (std::int64_t at = 0; at < shard.size(); at += std::ssize(tokens)) {
    tokens.resize(static_cast<std::size_t>(std::min<std::int64_t>(4096, shard.size() - at)));
    shard.read(at, tokens);
    for (const std::int32_t token : tokens) counter.add(static_cast<std::uint32_t>(token));
  }
  return counter.result();
}

}  // namespace foreshard::train
