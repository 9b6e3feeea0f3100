#include "train/run_folder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/version.hpp"

extern char** environ;

namespace foreshard::train {

namespace {

std::time_t now() { return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()); }

std::string utc_text(std::time_t time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time)); }

std::string job_suffix() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID"}) {
    if (const char* id = std::getenv(variable); id != nullptr && *id != '\0') return fmt::format("-{}", id);
  }
  return "";
}

/// Makes the first of `stem`, `stem`-2, `stem`-3, … that did not exist.
std::filesystem::path make_new_folder(const std::filesystem::path& stem) {
  for (int attempt = 1;; ++attempt) {
    const std::filesystem::path path = attempt == 1 ? stem.string() : fmt::format("{}-{}", stem.string(), attempt);
    if (std::filesystem::create_directory(path)) return path;
  }
}

/// A link made aside and renamed, so that there is always one.
void point_latest_to(const std::filesystem::path& run) {
  const std::filesystem::path aside = run.parent_path() / fmt::format(".latest-{}", getpid());
  std::filesystem::create_directory_symlink(run.filename(), aside);
  std::filesystem::rename(aside, run.parent_path() / "latest");
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream file(part);
  file << text;
  file.close();
  if (!file) throw LibraryError(fmt::format("writing {}: is the disk full?", part.string()));
  std::filesystem::rename(part, path);
}

bool may_record(std::string_view name) {
  constexpr std::array<std::string_view, 9> names{"SLURM_JOB_ID",        "SLURM_JOB_NAME",       "SLURM_NNODES",
                                                  "SLURM_NTASKS",        "SLURM_JOB_NODELIST",   "SLURM_CPUS_PER_TASK",
                                                  "SLURM_RESTART_COUNT", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"};
  constexpr std::array<std::string_view, 3> prefixes{"NCCL_", "OMPI_MCA_", "UCX_"};
  for (const std::string_view known : names) {
    if (name == known) return true;
  }
  for (const std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

RunFolder::RunFolder(const std::filesystem::path& dir, const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") {
    throw InputError(ExitCode::usage, fmt::format("run.name = `{}`: expected a name for a folder, without `/`", name));
  }
  try {
    std::filesystem::create_directories(dir / name);
    path_ = make_new_folder(dir / name / fmt::format("{:%Y%m%d-%H%M%S}{}", fmt::localtime(now()), job_suffix()));
    point_latest_to(path_);
  } catch (const std::filesystem::filesystem_error& error) {
    throw InputError(
        ExitCode::usage,
        fmt::format("run.dir = {}: no run folder can be made there ({}); choose a folder that you may write",
                    dir.string(), error.code().message()));
  }
}

std::string RunFolder::run_id() const { return path_.parent_path().filename() / path_.filename(); }

void RunFolder::write_config(const std::string& resolved_ini) const {
  write_file(file("config.resolved.ini"), resolved_ini);
}

RunRecord::RunRecord(std::filesystem::path path, std::string run_id, std::vector<std::string> command_line,
                     std::vector<std::string> hosts)
    : path_(std::move(path)) {
  json_ = {{"schema", "foreshard-run"},   {"schema_version", 1},
           {"run_id", std::move(run_id)}, {"version", version()},
           {"commit", version_commit()},  {"command_line", std::move(command_line)},
           {"hosts", std::move(hosts)},   {"environment", allowed_environment()},
           {"start", utc_text(now())},    {"end", nullptr},
           {"exit_reason", "running"},    {"exit_code", nullptr}};
  write();
}

void RunRecord::write() const { write_file(path_, json_text(json_) + "\n"); }

void RunRecord::finish(const std::string& exit_reason, int exit_code) {
  json_["end"] = utc_text(now());
  json_["exit_reason"] = exit_reason;
  json_["exit_code"] = exit_code;
  write();
}

nlohmann::json allowed_environment() {
  nlohmann::json allowed = nlohmann::json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (may_record(name)) allowed[std::string(name)] = text.substr(std::min(text.size(), name.size() + 1));
  }
  return allowed;
}

}  // namespace foreshard::train
