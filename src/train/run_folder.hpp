#pragma once
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace foreshard::train {

/// The folder of one run: DIR/NAME/20261129-171835[-JOBID]/, with the link DIR/NAME/latest. One process makes it (rank
/// 0).
class RunFolder {
 public:
  /// Makes a folder that did not exist (a second run in the same second gets "-2", …) and points `latest` to it. The
  /// time is local, the job id SLURM_JOB_ID or PBS_JOBID. Throws InputError(usage) if the folder cannot be made there.
  RunFolder(const std::filesystem::path& dir, const std::string& name);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::string run_id() const;  ///< "NAME/20261129-171835"

  /// Writes config.resolved.ini.
  void write_config(const std::string& resolved_ini) const;

 private:
  std::filesystem::path path_;
};

/// run.json: what ran, where, from when to when, and why it ended; enough for a bug report. Written at once with
/// exit_reason "running", so that a killed run leaves it too, and again by `finish`.
class RunRecord {
 public:
  /// Notes version, commit, command line, hosts, the allow-listed environment and the time.
  RunRecord(std::filesystem::path path, std::string run_id, std::vector<std::string> command_line,
            std::vector<std::string> hosts);

  /// Keys of the caller, at top level, e.g. `record["parameters"] = …`; written by the next `write` or `finish`.
  nlohmann::json& operator[](const std::string& key) { return json_[key]; }
  void write() const;
  void finish(const std::string& exit_reason, int exit_code);

 private:
  std::filesystem::path path_;
  nlohmann::json json_;
};

/// Environment variables that provenance may record, by allow-list: SLURM_JOB_ID and a few of its kind,
/// CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS, NCCL_*, OMPI_MCA_*, UCX_*. Nothing else of the environment is ever written.
nlohmann::json allowed_environment();

}  // namespace foreshard::train
