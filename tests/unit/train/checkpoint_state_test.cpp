#include "train/checkpoint_state.hpp"
#include "engine/cpu_executor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

/// One rank of its own, with `width`.
class OneRank {
 public:
  explicit OneRank(std::int64_t width, bool kept_in_bf16 = false)
      : rank_(settings_of(width, kept_in_bf16), DType::f32, 3, *communicators_[0], {}, engine::on_cpu(*kernels_, {})) {}
  TrainingRank* operator->() { return &rank_; }
  TrainingRank& operator*() { return rank_; }

  /// Gives each byte of the state a value of its own.
  void fill(int first) {
    for (const StateBuffer& state : state_of(rank_.plan()))
      rank_.change(state.buffer, [&](std::span<std::byte> bytes) {
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(first++);
      });
  }
  std::vector<std::byte> state() {
    std::vector<std::byte> all;
    for (const StateBuffer& state : state_of(rank_.plan()))
      std::ranges::copy(rank_.copy_of(state.buffer), std::back_inserter(all));
    return all;
  }

 private:
  static plan::Settings settings_of(std::int64_t width, bool kept_in_bf16) {
    plan::Settings settings{
        .model = model::GptConfig{.layers = 2, .width = width, .heads = 2, .vocab_size = 33, .max_seq_len = 8},
        .batch = {.batch = 1, .seq = 8}};
    if (kept_in_bf16) settings.schedule.precision.parameters = settings.schedule.master = DType::bf16;
    return settings;
  }

  std::vector<std::unique_ptr<comm::Communicator>> communicators_ = comm::make_local(1);
  std::unique_ptr<kernels::Backend> kernels_ = kernels::make_cpu();
  TrainingRank rank_;
};

const WritePoint nowhere = [](std::string_view) {};

TEST(CheckpointState, IsParametersAndMomentsOfEachUnitByName) {
  OneRank rank(8);
  std::vector<std::string> names;
  for (const StateBuffer& state : state_of(rank->plan())) names.push_back(state.name);
  ASSERT_EQ(names.size(), 9u);
  EXPECT_EQ(names[0], "root.parameters.0");
  EXPECT_EQ(names[4], "u0.optimizer.0");
  EXPECT_EQ(names[8], "u1.optimizer.1");
}

TEST(CheckpointState, ComesBackToTheByte) {
  const TemporaryFolder dir;
  OneRank saved(8), loaded(8);
  saved.fill(1);
  const FileEntry entry = write_state(dir / "rank-00000.safetensors", *saved, nowhere);
  loaded.fill(77);
  read_state(dir.path(), entry, *loaded);
  EXPECT_TRUE(loaded.state() == saved.state());
}

/// As a reader of safetensors that is not ours would see it.
void expect_well_formed(bool kept_in_bf16) {
  const TemporaryFolder dir;
  OneRank rank(8, kept_in_bf16);
  rank.fill(5);
  const std::string text = (write_state(dir / "f", *rank, nowhere), content_of(dir / "f"));
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
  const auto header = nlohmann::ordered_json::parse(text.substr(8, length));
  std::int64_t end = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const bool half = kept_in_bf16 && name.find(".parameters.") != name.npos;
    EXPECT_EQ(entry["dtype"], half ? "BF16" : "F32");
    EXPECT_EQ(entry["data_offsets"][0], end) << "no holes";
    end = entry["data_offsets"][1];
    EXPECT_EQ(entry["shape"][0].get<std::int64_t>() * (half ? 2 : 4),
              end - entry["data_offsets"][0].get<std::int64_t>());
  }
  EXPECT_EQ(8 + length + static_cast<std::size_t>(end), text.size());
  const auto state = rank.state();
  EXPECT_EQ(std::memcmp(text.data() + 8 + length, state.data(), state.size()), 0);
}

TEST(CheckpointState, IsAWellFormedSafetensorsFile) {
  expect_well_formed(false);
  expect_well_formed(true);
}

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    std::int64_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

TEST(CheckpointState, ScalarsComeBack) {
  const UpdateState state{
      .skipped_steps = {3, 1}, .skipped_in_a_row = 2, .scaler = {.scale = 0x1p17, .finite_steps = 41}};
  EXPECT_EQ(update_state_of(scalars_of(state)), state);
  EXPECT_EQ(update_state_of({}), UpdateState());
  OneRank rank(4);
  rank->restore(state);
  EXPECT_EQ(rank->skipped_steps(), 3);
  EXPECT_EQ(rank->update_state().scaler.scale, 1) << "the run's own, which is fixed";
}

TEST(CheckpointState, NeedsNoMemoryOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer keeps notes of every byte that is read";
#endif
  const TemporaryFolder dir;
  OneRank rank(512);
  rank.fill(9);  // all of it is resident now
  const std::int64_t before = peak_resident_bytes();
  const FileEntry entry = write_state(dir / "f", *rank, nowhere);
  read_state(dir.path(), entry, *rank);
  ASSERT_GT(entry.size_bytes, 64 << 20);
  ASSERT_GT(before, entry.size_bytes);
  EXPECT_LE(peak_resident_bytes() - before, 4 << 20);
}

}  // namespace
}  // namespace foreshard::train
