#pragma once
#include <gtest/gtest.h>

#include <thread>

#include "rehearsal/collectives/device_ranks.hpp"
#include "rehearsal/control.hpp"

namespace foreshard::comm::testing {

inline nccl::Deadline soon(std::chrono::milliseconds patience = std::chrono::seconds(60)) {
  return std::chrono::steady_clock::now() + patience;
}

/// Calls a function by a thread for each rank. One that throws fails the test and ends the others.
inline void on_threads(int ranks, const std::function<void(Communicator&)>& function) {
  const auto hosts = make_local(ranks);
  std::vector<std::thread> threads;
  for (const auto& host : hosts)
    threads.emplace_back([&function, &host] {
      try {
        function(*host);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << host->rank() << ": " << error.what();
        host->abort(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// The same with a rehearsed device for each. With a seed, streams are late at random.
inline void on_devices(int count, std::uint64_t seed, const std::function<void(Communicator&)>& function) {
  rehearsal::reset(count, std::size_t{256} << 20);
  if (seed != 0) rehearsal::delay_streams(seed, 50);
  on_threads(count, [&](Communicator& host) {
    DeviceRanks ranks(host, soon());
    function(ranks);
    host.barrier();
  });
}

}  // namespace foreshard::comm::testing
