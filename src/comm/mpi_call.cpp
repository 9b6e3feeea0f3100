#include "comm/mpi_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "comm/moves_messages.hpp"

namespace foreshard::comm {

namespace {

constexpr int tests_at_once = 32;
constexpr std::chrono::microseconds shortest_sleep{50}, longest_sleep{200};

bool calls_take_turns() {
  static const bool needed = [] {
    int level = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_MULTIPLE;
  }();
  return needed;
}

bool all_done(std::span<MPI_Request> requests) {
  int done = 0;
  mpi_call("MPI_Testall", MPI_Testall, static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  return done != 0;
}

}  // namespace

std::unique_lock<std::mutex> mpi_turn() {
  static std::mutex mutex;
  return calls_take_turns() ? std::unique_lock(mutex) : std::unique_lock(mutex, std::defer_lock);
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0, rank = -1;
  MPI_Error_string(code, text, &length);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  throw LibraryError(fmt::format("{} failed on rank {}: {}", call, rank, text));
}

void wait_for(std::span<MPI_Request> requests, const AbortFlag& abort, std::string_view call) {
  const MovesMessages moves;
  auto sleep = shortest_sleep;
  for (int test = 1; !all_done(requests); ++test) {
    abort.check(call);
    if (test < tests_at_once) continue;
    std::this_thread::sleep_for(sleep);
    sleep = std::min(longest_sleep, sleep + sleep / 4);
  }
}

MpiComm::MpiComm(MPI_Comm comm) : comm_(comm) {
  mpi_call("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler, comm_, MPI_ERRORS_RETURN);
}

MpiComm::~MpiComm() {
  if (comm_ == MPI_COMM_NULL) return;
  const auto turn = mpi_turn();
  int ended = 0;
  if (MPI_Finalized(&ended) == MPI_SUCCESS && ended == 0) MPI_Comm_free(&comm_);
}

int MpiComm::rank() const {
  int rank = 0;
  mpi_call("MPI_Comm_rank", MPI_Comm_rank, comm_, &rank);
  return rank;
}

int MpiComm::size() const {
  int size = 0;
  mpi_call("MPI_Comm_size", MPI_Comm_size, comm_, &size);
  return size;
}

}  // namespace foreshard::comm
