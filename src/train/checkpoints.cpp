#include "train/checkpoints.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "train/agreement.hpp"
#include "train/checkpoint_folder.hpp"

namespace foreshard::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Of a configuration, what decides the numbers.
Json deciding(Json config) {
  for (const char* section : {"checkpoint", "comm", "engine", "metrics", "run", "trace", "validation"})
    config.erase(section);
  return config;
}

/// Absolute and without a `/` at its end.
fs::path comparable(const fs::path& path) {
  if (path.empty()) return path;
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

void add_checkpoint_keys(Config& config) {
  config.add("checkpoint.freq", 0, "save every so many steps, and at the end; 0 = only on SIGUSR1",
             {.unit = "steps", .min = 0});
  config.add("checkpoint.dir", std::string(), "folder of checkpoints; empty = checkpoints in the run folder");
  config.add("checkpoint.resume", std::string("off"),
             "off, a checkpoint's path, or auto = the newest whole one in checkpoint.dir, or of run.dir/run.name");
  config.add("checkpoint.keep", 3, "newest checkpoints that stay; 0 = all", {.min = 0});
}

CheckpointSettings read_checkpoint_settings(const Config& config) {
  return {.freq = config.get<std::int64_t>("checkpoint.freq"),
          .keep = config.get<std::int64_t>("checkpoint.keep"),
          .dir = comparable(config.get<std::string>("checkpoint.dir")),
          .resume = config.get<std::string>("checkpoint.resume"),
          .runs = comparable(fs::path(config.get<std::string>("run.dir")) / config.get<std::string>("run.name"))};
}

Checkpoints::Checkpoints(CheckpointSettings settings, comm::Communicator& communicator, TrainingRank& rank,
                         Manifest facts)
    : settings_(std::move(settings)), communicator_(communicator), rank_(rank), facts_(std::move(facts)) {}

std::int64_t Checkpoints::resume() {
  together(communicator_, [&] { expect_folder(); });
  if (settings_.resume != "off") {
    std::vector<fs::path> found;
    together(communicator_, [&] { found = candidates(); });
    resumed_ = resume_from(communicator_, rank_, found, facts_.layout);
  }
  saved_step_ = resumed_ ? resumed_->manifest.step : 0;
  if (resumed_) rank_.restore(update_state_of(resumed_->manifest.scalars));
  if (leads()) tell();
  together(communicator_, [&] { expect_room_after(saved_step_); });
  return saved_step_;
}

void Checkpoints::expect_folder() const {
  if (!leads() || !fs::exists(settings_.dir) || fs::is_directory(settings_.dir)) return;
  throw InputError(ExitCode::usage, fmt::format("checkpoint.dir = {} is not a folder; give one, which need not exist",
                                                settings_.dir.string()));
}

/// On rank 0, newest first.
std::vector<fs::path> Checkpoints::candidates() const {
  if (!leads()) return {};
  if (settings_.resume == "auto")
    return settings_.dir.empty() ? checkpoints_of_runs(settings_.runs) : checkpoints_in(settings_.dir);
  const fs::path path = comparable(settings_.resume);
  if (fs::is_directory(path)) return {path};
  throw InputError(ExitCode::usage, fmt::format("checkpoint.resume = {}: expected off, auto, or the folder of a "
                                                "checkpoint, such as runs/train/latest/checkpoints/{}",
                                                settings_.resume, checkpoint_name(100)));
}

void Checkpoints::expect_room_after(std::int64_t step) const {
  if (!leads() || settings_.dir.empty()) return;
  if (resumed_)
    for (const fs::path& refused : resumed_->refused)
      if (refused.parent_path() == settings_.dir) log_warn("set aside as {}", set_aside(refused).string());
  const auto there = checkpoints_in(settings_.dir);
  if (there.empty() || *step_of(there.front()) <= step) return;
  throw InputError(ExitCode::usage, fmt::format("checkpoint.dir = {} holds {}, and this run begins after step {}: give "
                                                "--checkpoint.resume=auto to go on from it, or another checkpoint.dir",
                                                settings_.dir.string(), there.front().filename().string(), step));
}

void Checkpoints::tell() const {
  if (!resumed_) {
    if (settings_.resume == "auto") log_info("checkpoint   none to resume from: starting at step 1");
    return;
  }
  log_info("resumed      after step {} from {}", resumed_->manifest.step, resumed_->checkpoint.string());
  for (const std::string& line : differences(deciding(resumed_->manifest.config), deciding(facts_.config)))
    log_warn("{}: this run goes on with its own", line);
}

bool Checkpoints::due_after(std::int64_t step, std::int64_t last) const {
  return settings_.freq > 0 && (step % settings_.freq == 0 || step == last);
}

fs::path Checkpoints::save(std::int64_t step, const fs::path& run_folder) {
  if (step == saved_step_) return saved_;
  Manifest manifest = facts_;
  manifest.step = step;
  manifest.scalars = scalars_of(rank_.update_state());
  const fs::path folder = settings_.dir.empty() ? comparable(run_folder / "checkpoints") : settings_.dir;
  saved_ = save_checkpoint(communicator_, rank_, std::move(manifest), {.folder = folder, .keep = settings_.keep});
  saved_step_ = step;
  return saved_;
}

}  // namespace foreshard::train
