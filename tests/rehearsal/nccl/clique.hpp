#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/nccl/collective.hpp"

namespace rehearsal {

/// What happened to one rank's communicator, also for its work that is still queued.
struct Fate {
  std::atomic<bool> aborted = false;
  std::atomic<ncclResult_t> error = ncclSuccess;
  std::atomic<int> queued = 0;  ///< collectives that have not ended
};

/// The ranks of one communicator: threads of this process, each with a device of its own.
class Clique {
 public:
  explicit Clique(int size);

  int size() const { return size_; }
  /// What is wrong with this rank's coming, or empty.
  std::string join(int rank, int device);
  bool complete() const;
  /// Until all have come; false if aborted before.
  bool wait_until_complete(const Fate&) const;

  /// Waits for all ranks' next collective, which is then carried out. Returns early when this rank is aborted. If the
  /// ranks' collectives do not match, all of them fail.
  void meet(int rank, const Collective&, Fate&);
  void wake();  ///< after a fate has changed

  /// Wishes of all ranks for the n-th split.
  struct Split {
    struct Wish {
      int color, key;
    };
    std::vector<std::optional<Wish>> wishes;
    std::map<int, std::shared_ptr<Clique>> parts;  ///< by color, once all have come
    std::vector<int> ranks;                        ///< in their part, by rank here
    bool complete = false;
  };
  void ask_for_split(int rank, std::size_t number, Split::Wish);
  const Split* split(std::size_t number) const;  ///< null until all have come

 private:
  struct Round {
    std::vector<std::optional<Collective>> parts;
    int arrived = 0, left = 0;
    bool done = false;
  };
  void arrive(Round&, std::uint64_t number, int rank, const Collective&);
  void withdraw(Round&, int rank);
  void compare(const Round&, std::uint64_t number, int rank);
  void complete(Split&);

  const int size_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<int> devices_;  ///< by rank, −1 until it has come
  int joined_ = 0;
  std::vector<std::uint64_t> next_;  ///< by rank
  std::map<std::uint64_t, Round> rounds_;
  std::map<std::size_t, Split> splits_;
  bool broken_ = false;
};

}  // namespace rehearsal
