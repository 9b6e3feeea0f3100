#include "sim/runtimes/checkpoint.hpp"

#include <utility>

namespace foreshard::sim::torch {

Checkpoint::Slot Checkpoint::save(const Storage& storage) {
  if (!running_again_) {
    auto slot = std::make_shared<Storage>();
    slots_.push_back(slot);
    return slot;
  }
  if (const Slot slot = slots_[next_].lock()) *slot = storage;
  if (++next_ == slots_.size() && early_stop_) throw Complete{};
  return std::make_shared<Storage>(storage);
}

Storage Checkpoint::take(const Slot& slot) {
  if (!ran_again_) run_again();
  return std::exchange(*slot, Storage{});
}

void Checkpoint::run_again() {
  running_again_ = ran_again_ = true;
  try {
    again();
  } catch (const Complete&) {
  }
  running_again_ = false;
}

}  // namespace foreshard::sim::torch
