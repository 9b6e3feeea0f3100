#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace foreshard {

/// info: rank 0 only. warn and error: every rank.
enum class LogLevel { info, warn, error };

/// Says who this process is in log lines. Until called, the rank is that of `launch_rank`.
void set_log_rank(int rank);

/// Rank according to the launcher's environment, before MPI_Init and good for printing only:
/// the first of PMIX_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID; else 0.
int launch_rank();

/// Short name of this machine.
std::string host_name();

/// One line to stderr, in one write. Prefix: nothing on rank 0 at info, "WARN " or "ERROR " else, and "[rank host] "
/// beyond rank 0.
void log_line(LogLevel level, std::string_view message);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace foreshard
