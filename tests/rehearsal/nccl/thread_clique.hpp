#pragma once
#include <condition_variable>
#include <mutex>

#include "rehearsal/nccl/clique.hpp"

namespace rehearsal {

/// Ranks that are threads of this process.
class ThreadClique : public Clique {
 public:
  explicit ThreadClique(int size);

  int size() const override { return size_; }
  std::string join(int rank, int device) override;
  bool complete() const override;
  void meet(int rank, const Collective&, Fate&) override;
  void wake() override;
  void ask_for_split(int rank, std::size_t number, Split::Wish) override;
  const Split* split(std::size_t number) const override;

 private:
  struct Round {
    std::vector<std::optional<Collective>> parts;
    int arrived = 0, left = 0;
    bool done = false;
  };
  void arrive(Round&, std::uint64_t number, int rank, const Collective&);
  void withdraw(Round&, int rank);
  void compare(const Round&, std::uint64_t number, int rank);
  void make_parts(Split&);

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
