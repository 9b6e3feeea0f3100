#include "train/start_guard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace foreshard::train {
namespace {

constexpr std::chrono::duration<double> turn{0.3};
constexpr int most_turns = 10;

}  // namespace

StartGuard::StartGuard(std::string what, std::chrono::duration<double> patience,
                       std::function<void(std::exception_ptr)> on_late)
    : what_(std::move(what)), patience_(patience), on_late_(std::move(on_late)) {
  if (patience_.count() > 0) thread_ = std::thread([this] { watch(); });
}

StartGuard::~StartGuard() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StartGuard::watch() {
  const auto until = patience_ + std::min(launch_rank(), most_turns) * turn;
  {
    std::unique_lock lock(mutex_);
    if (end_.wait_for(lock, until, [this] { return ended_; })) return;
  }
  on_late_(std::make_exception_ptr(
      InputError(ExitCode::stalled,
                 fmt::format("{} did not end within {:.4g} s: a process of the job is stopped or did not start, "
                             "or its node cannot be reached",
                             what_, patience_.count()))));
}

}  // namespace foreshard::train
