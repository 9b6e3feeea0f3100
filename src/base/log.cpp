#include "base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>

namespace foreshard {

namespace {

int rank_from(const char* variable) {
  const char* text = std::getenv(variable);
  int rank = -1;
  if (text != nullptr) std::from_chars(text, text + std::string_view(text).size(), rank);
  return rank;
}

std::atomic<int>& log_rank() {
  static std::atomic<int> rank{launch_rank()};
  return rank;
}

std::string_view level_text(LogLevel level) {
  constexpr std::string_view names[] = {"", "WARN ", "ERROR "};
  return names[static_cast<int>(level)];
}

}  // namespace

int launch_rank() {
  for (const char* variable : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const int rank = rank_from(variable); rank >= 0) return rank;
  }
  return 0;
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  const std::string_view full(name);
  return std::string(full.substr(0, full.find('.')));
}

void set_log_rank(int rank) { log_rank() = rank; }

void log_line(LogLevel level, std::string_view message) {
  const int rank = log_rank();
  if (level == LogLevel::info && rank != 0) return;
  const std::string who = rank == 0 ? "" : fmt::format("[rank {} {}] ", rank, host_name());
  const std::string line = fmt::format("{}{}{}\n", who, level_text(level), message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace foreshard
