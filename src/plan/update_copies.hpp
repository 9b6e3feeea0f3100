#pragma once
#include <vector>

#include "plan/builder.hpp"

namespace foreshard::plan {

/// Where the optimizer finds the shards of each unit. It works on the device: what lies in host memory is fetched, unit
/// by unit and ahead of it, and what it changed is written back behind it, on the copy lane. Where all of a unit's
/// shards lie in host memory it works there, without copies, as in "ZeRO-Offload" (Ren et al., 2021): an update touches
/// each number once, so carrying all of them to the device and back would cost as much as the update itself.
class UpdateCopies {
 public:
  /// Issues the fetches for the first of `units`, which are updated in this order. At the beginning of the segment.
  UpdateCopies(Builder& build, std::vector<UnitId> units);

  /// The unit with the buffers that its update works on.
  const FlatParameter& at(UnitId unit) const { return at_[unit.value]; }

  /// Adds what the update of `unit` waits for.
  void add_waits(UnitId unit, std::vector<Wait>& waits) const;

  /// Writes back what `update` changed; the last op that touches the unit's parameters.
  OpId write_back(UnitId unit, OpId update);

  /// Issues the fetches of the next unit, if there is one.
  void fetch_ahead();

 private:
  /// A shard in host memory and the device buffer that stands for it during the update.
  struct Copy {
    BufferId home, staging;
    bool written = false;
  };
  bool works_in_host(const FlatParameter& unit) const;
  bool in_host(BufferId buffer) const;
  void stage(UnitId unit);
  void stage(UnitId unit, BufferId& home, bool written);
  Wait begin_of(std::size_t index) const;

  Builder& build_;
  std::vector<UnitId> units_;
  std::vector<FlatParameter> at_;          // by unit
  std::vector<std::vector<Copy>> copies_;  // by unit
  std::vector<OpId> fetched_, updated_;    // by unit
  std::size_t next_ = 0;                   // index of the unit to fetch
};

}  // namespace foreshard::plan
