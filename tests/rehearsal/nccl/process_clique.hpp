#pragma once
#include <mutex>

#include "rehearsal/nccl/clique.hpp"

namespace rehearsal {

/// Ranks that are processes of one node, with shared memory between them: each copies what it sends to a place that all
/// can read, and makes its own result.
class ProcessClique : public Clique {
 public:
  /// The ranks that say the same name, which is nothing else's. Throws std::system_error.
  ProcessClique(std::string name, int size);
  ~ProcessClique() override;
  ProcessClique(const ProcessClique&) = delete;

  int size() const override { return size_; }
  std::string join(int rank, int device) override;
  bool complete() const override;
  void meet(int rank, const Collective&, Fate&) override;
  void wake() override {}
  void ask_for_split(int rank, std::size_t number, Split::Wish) override;
  const Split* split(std::size_t number) const override;

 private:
  struct Shared;
  struct Rank;
  Rank& of(int rank) const;
  char* sent_by(int rank) const;
  template <class Holds>
  bool await(const Fate&, Holds holds) const;
  bool all_have(std::atomic<std::uint64_t> Rank::*passed, std::uint64_t number) const;
  void send(int rank, const Collective&, std::uint64_t number);
  void compare(int rank, std::uint64_t number) const;
  void receive(int rank, const Collective&) const;
  void fail(Fate&) const;

  const std::string name_;
  const int size_;
  Shared* shared_;
  int rank_ = -1;
  int device_ = 0;
  std::mutex meeting_;
  std::uint64_t met_ = 0;  ///< collectives that this rank has begun
  mutable std::mutex mutex_;
  mutable std::map<std::size_t, Split> splits_;
};

}  // namespace rehearsal
