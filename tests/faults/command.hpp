#pragma once
#include <filesystem>
#include <string>

namespace foreshard::faults {

struct Result {
  int exit_code = -1;  ///< 124: it did not end within the limit
  std::string output;  ///< stdout and stderr
  double seconds = 0;
};

/// Runs a shell command, at most a minute.
Result run(const std::string& command);

/// "foreshard-train ARGUMENTS" on a tiny model and the data set of `folder`, one step.
std::string program(const std::filesystem::path& folder, const std::string& arguments);

/// "mpirun -n RANKS" and that.
std::string training(int ranks, const std::filesystem::path& folder, const std::string& arguments);

/// The process that is rank `rank` of the training run in `folder`. Waits until that run has ended its first step; 0 if
/// it does not within half a minute.
int process_of(const std::filesystem::path& folder, int rank);

/// A fresh folder with text_train.bin and text_val.bin of a few thousand bytes.
class DataFolder {
 public:
  DataFolder();
  ~DataFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace foreshard::faults
