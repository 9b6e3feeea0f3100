#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "sim/runtimes/live_bytes.hpp"

namespace foreshard::sim::torch {

/// A region that is computed again in backward (torch.utils.checkpoint, not reentrant): its forward keeps nothing but
/// the input; the first that asks for a saved tensor runs it again, up to the last tensor that was saved, then stops.
class Checkpoint {
 public:
  /// Without `early_stop` the second run goes on to the region's end.
  explicit Checkpoint(bool early_stop = true) : early_stop_(early_stop) {}
  using Slot = std::shared_ptr<Storage>;
  std::function<void()> again;  ///< runs the region again

  /// A saved tensor's place; the operator that saves owns it. In the second run the storage fills the next place.
  Slot save(const Storage& storage);
  /// The tensor of that place, which it leaves.
  Storage take(const Slot& slot);

  /// Thrown through the second run as soon as all that was saved is there again.
  struct Complete {};

 private:
  void run_again();

  std::vector<std::weak_ptr<Storage>> slots_;
  std::size_t next_ = 0;
  bool early_stop_;
  bool running_again_ = false, ran_again_ = false;
};

/// What an operator keeps for its backward.
class Saved {
 public:
  explicit Saved(Storage storage) : storage_(std::move(storage)) {}
  Saved(std::shared_ptr<Checkpoint> region, const Storage& storage)
      : region_(std::move(region)), slot_(region_->save(storage)) {}
  Storage get() const { return region_ ? region_->take(slot_) : storage_; }

 private:
  Storage storage_;
  std::shared_ptr<Checkpoint> region_;
  Checkpoint::Slot slot_;
};

}  // namespace foreshard::sim::torch
