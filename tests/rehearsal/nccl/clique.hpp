#pragma once
#include <atomic>
#include <map>
#include <memory>
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

/// The ranks of one communicator, each with a device of its own: threads of this process, or processes of this node.
class Clique {
 public:
  virtual ~Clique() = default;

  virtual int size() const = 0;
  /// What is wrong with this rank's coming, or empty.
  virtual std::string join(int rank, int device) = 0;
  virtual bool complete() const = 0;

  /// Waits for all ranks' next collective, which is then carried out. Returns early when this rank is aborted. If the
  /// ranks' collectives do not match, all of them fail.
  virtual void meet(int rank, const Collective&, Fate&) = 0;
  virtual void wake() = 0;  ///< after a fate has changed

  /// Wishes of all ranks for the n-th split.
  struct Split {
    struct Wish {
      int color, key;
    };
    std::vector<std::optional<Wish>> wishes;
    std::map<int, std::shared_ptr<Clique>> parts;  ///< by color, once all have come; at least this rank's own
    std::vector<int> ranks;                        ///< in their part, by rank here
    bool complete = false;

    bool has_all() const;
    /// Ranks by color, in order of key, then of rank; their places in `ranks`.
    std::map<int, std::vector<int>> deal();
  };
  virtual void ask_for_split(int rank, std::size_t number, Split::Wish) = 0;
  virtual const Split* split(std::size_t number) const = 0;  ///< null until all have come
};

std::string duplicate_text(int rank, int other, int device);
std::string mismatch_text(std::uint64_t number, int size, int rank, const Collective& own, int other,
                          const Collective& of_other);

/// A new one for the ranks that have this id: processes if this one is of a job, else threads.
std::shared_ptr<Clique> make_clique(const std::string& id, int size);

}  // namespace rehearsal
