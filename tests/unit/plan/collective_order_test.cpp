// The order in which real PyTorch FSDP issues its collectives around each unit's compute: 252 settings of FSDP1 and
// FSDP2, executed with torch 2.15.0 (tests/golden/make_fsdp_collective_order.py). Ours is the same but for three
// differences on purpose, each applied to our order before it is compared:
//   - the root is gathered once a step, not once a micro-batch, since nothing frees it in between: a gather less;
//   - FSDP1's forward prefetch issues each reduction one unit late, which keeps one more unsharded gradient: ours does
//     not;
//   - FSDP1 has to record the order in the first forward before it can prefetch; our plan knows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plan/print.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text, char separator) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

struct Row {
  std::string runtime, strategy, backward_prefetch, forward_prefetch, depth, micro_batches, no_sync, step, order;

  bool fsdp1() const { return runtime == "fsdp1"; }
  bool hybrid() const { return strategy.starts_with("hybrid"); }
  bool grad_op() const { return strategy == "grad_op" || strategy == "hybrid2"; }
  bool late_reductions() const { return fsdp1() && forward_prefetch == "True"; }
};

std::vector<Row> read_rows() {
  std::vector<Row> rows;
  std::ifstream file(FORESHARD_GOLDEN_DIR "/fsdp_collective_order.csv");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const Words w = split(line, ',');
    rows.push_back({w.at(0), w.at(1), w.at(2), w.at(3), w.at(4), w.at(5), w.at(6), w.at(7), w.at(8)});
  }
  return rows;
}

ScheduleOptions options_of(const Row& row) {
  ScheduleOptions o = free_options();
  o.micro_batches = std::stoi(row.micro_batches);
  if (row.backward_prefetch == "none") o.prefetch = BackwardPrefetch::none;
  if (row.backward_prefetch == "post") o.prefetch = BackwardPrefetch::post;
  if (!row.depth.empty()) o.prefetch_depth = std::max(1, std::stoi(row.depth));  // FSDP2 prefetches one by default
  o.forward_prefetch = row.depth.empty() ? row.forward_prefetch == "True" : std::stoi(row.depth);
  if (row.no_sync == "True") o.accumulation = Accumulation::no_sync;
  if (row.grad_op()) o.keep = row.fsdp1() && row.no_sync == "True" ? Keep::step : Keep::micro_batch;
  return o;
}

Mesh mesh_of(const Row& row) {
  if (row.strategy == "no") return {.replicas = 8};
  return row.hybrid() ? Mesh{.replicas = 2, .inner = 4} : Mesh{.inner = 8};
}

/// The words of each micro-batch.
std::vector<Words> micro_batches_of(const std::string& order) {
  std::vector<Words> parts;
  for (const std::string& word : split(order, ' ')) {
    if (word == "|step") break;
    if (word.starts_with("|micro"))
      parts.emplace_back();
    else
      parts.back().push_back(word);
  }
  return parts;
}

std::vector<Words> our_micro_batches(const Row& row, const ScheduleOptions& options) {
  return micro_batches_of(order_text(build_plan(tiny_graph(), mesh_of(row), options)));
}

bool reduces(const std::string& word) { return word.starts_with("RS:") || word.starts_with("AR:"); }

/// Each unit's reduction behind the backward of the next unit, those of the last unit and the root at the end.
Words with_late_reductions(const Words& words) {
  Words late, now;
  for (const std::string& word : words) {
    if (reduces(word)) {
      now.push_back(word);
      continue;
    }
    late.push_back(word);
    if (!word.starts_with("B:")) continue;
    late.insert(late.end(), now.begin(), now.end());
    now.clear();
  }
  late.insert(late.end(), now.begin(), now.end());
  return late;
}

bool gathers_root(const Row& row) { return mesh_of(row).shard_degree() > 1; }

/// What PyTorch would issue, by our plan.
std::vector<Words> expected_of(const Row& row) {
  const ScheduleOptions options = options_of(row);
  std::vector<Words> parts = our_micro_batches(row, options);
  const bool kept_root = options.keep == Keep::step;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (gathers_root(row) && !kept_root) parts[i].insert(parts[i].begin(), "AG:root");
  if (!row.late_reductions()) return parts;
  for (Words& part : parts) part = with_late_reductions(part);
  if (row.step != "1") return parts;
  ScheduleOptions recording = options;
  recording.forward_prefetch = 0;
  parts.front() = our_micro_batches(row, recording).front();
  return parts;
}

TEST(CollectiveOrder, IsPyTorchsInEverySetting) {
  const std::vector<Row> rows = read_rows();
  ASSERT_EQ(rows.size(), 252U);
  for (const Row& row : rows)
    EXPECT_EQ(expected_of(row), micro_batches_of(row.order))
        << row.runtime << " " << row.strategy << " backward " << row.backward_prefetch << " forward "
        << row.forward_prefetch << " depth " << row.depth << " micro-batches " << row.micro_batches << " no_sync "
        << row.no_sync << " step " << row.step;
}

TEST(CollectiveOrder, OfTwoMicroBatchesGathersTheRootOnce) {
  ScheduleOptions options = free_options();
  options.micro_batches = 2;
  const auto parts = micro_batches_of(order_text(tiny_plan(options)));
  EXPECT_EQ(std::ranges::count(parts.at(0), "AG:root"), 1);
  EXPECT_EQ(std::ranges::count(parts.at(1), "AG:root"), 0);
}

TEST(CollectiveOrder, OneRankHasNoCollectives) {
  EXPECT_EQ(order_text(tiny_plan(free_options(), 1, 1)), "|micro0 F:u0 F:u1 F:u2 F:u3 B:u3 B:u2 B:u1 B:u0 |step");
}

}  // namespace
}  // namespace foreshard::plan
