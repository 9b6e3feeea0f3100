#include "apps/calibrate/local_ranks.hpp"

#include <mutex>
#include <thread>

#include "apps/calibrate/process.hpp"

namespace foreshard::calibrate {
namespace {

/// Runs work(i) on `count` threads, each bound to a core of its own, as a launcher does, if there are enough;
/// on_failure(i) frees the others from waiting.
void run_threads(int count, const std::function<void(int)>& work, const std::function<void(int)>& on_failure) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&](int i) {
    try {
      if (count > 1 && count <= online_cores()) use_core(i);
      work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      on_failure(i);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(guarded, i);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

void run_local_ranks(int count, const std::function<void(comm::Communicator&)>& body) {
  const auto ranks = comm::make_local(count);
  const auto rank = [&](int i) -> comm::Communicator& { return *ranks[static_cast<std::size_t>(i)]; };
  run_threads(
      count, [&](int i) { body(rank(i)); }, [&](int i) { rank(i).abort(1); });
}

void run_lone_ranks(int count, const std::function<void(int, comm::Communicator&)>& body) {
  run_threads(
      count, [&](int i) { body(i, *comm::make_local(1).front()); }, [](int) {});
}

}  // namespace foreshard::calibrate
