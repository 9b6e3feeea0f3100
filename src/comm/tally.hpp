#pragma once
#include <atomic>
#include <cstdint>

#include "comm/communicator.hpp"

namespace foreshard::comm {

/// Counters that the groups of one communicator feed from several threads.
class Tally {
 public:
  class Entry {
   public:
    void add(std::int64_t payload_bytes, std::int64_t received_bytes) {
      calls_.fetch_add(1, std::memory_order_relaxed);
      payload_bytes_.fetch_add(static_cast<std::uint64_t>(payload_bytes), std::memory_order_relaxed);
      received_bytes_.fetch_add(static_cast<std::uint64_t>(received_bytes), std::memory_order_relaxed);
    }
    Count read() const { return {calls_.load(), payload_bytes_.load(), received_bytes_.load()}; }

   private:
    std::atomic<std::uint64_t> calls_{0}, payload_bytes_{0}, received_bytes_{0};
  };

  Entry all_gather, reduce_scatter, all_reduce;

  Counters read() const { return {all_gather.read(), reduce_scatter.read(), all_reduce.read()}; }
};

}  // namespace foreshard::comm
