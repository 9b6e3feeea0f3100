#include "command.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "train/data_shard.hpp"

namespace foreshard::faults {

Result run(const std::string& command) {
  const auto began = std::chrono::steady_clock::now();
  Result result;
  FILE* pipe = popen(fmt::format("timeout 60 {} 2>&1", command).c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

std::string program(const std::filesystem::path& folder, const std::string& arguments) {
  return fmt::format(
      "{}/foreshard-train --model.preset=byte-tiny --train.seq_len=16 --train.steps=1 "
      "--data.path={}/text_train.bin --run.dir={}/runs {}",
      FORESHARD_BIN, folder.string(), folder.string(), arguments);
}

std::string training(int ranks, const std::filesystem::path& folder, const std::string& arguments) {
  return fmt::format("{} {} {}", FORESHARD_MPIRUN, ranks, program(folder, arguments));
}

namespace {

/// What the kernel says of a process, e.g. its "cmdline": words that each end with a zero byte.
std::string words_of(const std::filesystem::path& process, const char* what) {
  std::ifstream file(process / what);
  return std::string(1, '\0') + std::string(std::istreambuf_iterator<char>(file), {});
}

bool is_rank(const std::filesystem::path& process, const std::filesystem::path& folder, int rank) {
  const std::string number = fmt::format("{}OMPI_COMM_WORLD_RANK={}{}", '\0', rank, '\0');
  return words_of(process, "cmdline").find(folder.string()) != std::string::npos &&
         words_of(process, "environ").find(number) != std::string::npos;
}

bool has_stepped(const std::filesystem::path& folder) {
  std::error_code none;
  const auto size = std::filesystem::file_size(folder / "runs/train/latest/metrics.jsonl", none);
  return !none && size > 0;
}

}  // namespace

int process_of(const std::filesystem::path& folder, int rank) {
  for (int look = 0; look < 3000 && !has_stepped(folder); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!has_stepped(folder)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (is_rank(entry.path(), folder, rank)) return std::atoi(entry.path().filename().c_str());
  return 0;
}

DataFolder::DataFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "foreshard-faults-XXXXXX").string();
  path_ = mkdtemp(name.data());
  std::vector<std::uint16_t> tokens(3000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::uint16_t>(i * i % 251);
  train::write_shard(path_ / "text_train.bin", tokens);
  train::write_shard(path_ / "text_val.bin", tokens);
}

DataFolder::~DataFolder() { std::filesystem::remove_all(path_); }

}  // namespace foreshard::faults
