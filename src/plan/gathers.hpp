#pragma once
#include <array>
#include <vector>

#include "plan/builder.hpp"
#include "plan/visits.hpp"

namespace foreshard::plan {

/// The ops around one numbered visit of the micro-batch being scheduled; none where there is none.
struct Around {
  OpId gather;  ///< that brings its parameters
  OpId end;     ///< its last compute op
  OpId retain;  ///< that keeps this rank's part of them for backward
  OpId reduce;  ///< after which its unsharded gradient is free
};

/// Issues the gathers of a plan, each directly behind the last op it waits for, and knows where parameters lie.
class Gathers {
 public:
  /// `around` is by visit number; it is the scheduler's, and belongs to the current micro-batch.
  Gathers(Builder& build, const std::vector<Visit>& visits, const ScheduleOptions& options,
          std::vector<Around>& around);

  /// Issues what waits for nothing in this micro-batch; in a step's first one that is the root too, and units without
  /// visits of their own.
  void begin_micro_batch(bool first);

  /// The flat buffer that a visit reads parameters of `unit` from: of its own, of the root, or of one that has no
  /// visits.
  BufferId parameters_of(const Visit& visit, UnitId unit);

  /// Where the packed words of `unit` begin that a visit reads: in what was gathered, or in the shard that is all.
  struct Place {
    BufferId buffer;
    std::int64_t offset_bytes = 0;
  };
  Place packed_of(const Visit& visit, UnitId unit);

  /// Adds what the first compute op of a visit waits for.
  void add_waits(const Visit& visit, std::vector<Wait>& waits);

  /// Retains this rank's part of what a visit gathered, where its unit is resharded to a smaller group.
  void retain(const Visit& visit);

  /// Issues the fetches, from host memory, for gathers that wait for the end of the visit after `number` or earlier:
  /// one visit ahead, so that no gather waits for a copy that is as fast as a visit's compute.
  void fetch_after(int number);

  /// Issues the gather of the visit after `number`, if it waits for that visit's end but not for its reduction.
  void issue_next_after(int number);

  /// Issues all gathers not yet issued that wait for the end of visit `number` or earlier.
  void issue_after(int number);

 private:
  /// What is gathered: the unit's shards, or the parts that the inner group retained.
  struct Source {
    BufferId parts;
    DType dtype = DType::f32;
    GroupKind group = GroupKind::shard;
    OpId written;  ///< by this op of the micro-batch; none: before it
  };
  const FlatParameter& flat(UnitId unit) const { return build_.plan.units[unit.value]; }
  bool is_gathered(UnitId unit) const { return unit_bytes_[unit.value] > 0; }
  bool moves_packed(UnitId unit) const {
    return flat(unit).packed.elements > 0 && flat(unit).moves_packed(options_.offload.parameters);
  }
  /// Packed words in a buffer of one of `parts` parts of the unit, elements in `type`.
  Operand packed(UnitId unit, BufferId buffer, int parts, DType type, std::int64_t words, bool written) const;
  /// Its shard is all there is to gather.
  bool is_whole(UnitId unit) const { return flat(unit).shard_degree == 1 && flat(unit).gathered == build_.plan.master; }
  /// The inner group retains its parts after forward.
  bool is_resharded(const Visit& visit) const;
  bool regathers(const Visit& visit) const { return is_resharded(visit) && visit.phase == Phase::backward; }
  /// Its shard is fetched into a buffer of its own, to be gathered from there.
  bool is_staged(const Visit& visit) const {
    return options_.offload.parameters && !is_whole(visit.unit) && !regathers(visit);
  }
  /// Index of a visit's staging buffer; units without visits of their own come behind them.
  std::size_t slot(const Visit& visit) const {
    return visit.number >= 0 ? static_cast<std::size_t>(visit.number) : around_.size() + visit.unit.value;
  }
  Around& around(int number) { return around_[static_cast<std::size_t>(number)]; }
  const GatherRule& rule(const Visit& visit) const { return rules()[static_cast<std::size_t>(visit.number)]; }
  const std::vector<GatherRule>& rules() const { return first_ ? first_rules_ : later_rules_; }
  BufferId& buffer_of(const Visit& visit);
  using Position = std::vector<Visit>::const_iterator;
  const Visit* next(Position& position, bool staged_only) const;
  void issue(const Visit& visit);
  void fetch(const Visit& visit, std::span<const Wait> waits);
  std::vector<Wait> waits_of(const Visit& visit);
  std::vector<Wait> end_of(int number, UnitId unit);
  UnitId freed_before(int number) const;
  void gather_standing();
  Source source_of(const Visit& visit);
  OpId gather(UnitId unit, Phase phase, const Source& source, BufferId& whole, std::span<const Wait> waits);
  OpId gather(UnitId unit, Phase phase, const FlatRange& range, const Source& source, BufferId whole,
              std::span<const Wait> waits);
  OpId gather_packed(UnitId unit, Phase phase, const Source& source, BufferId whole, std::span<const Wait> waits);
  void retain_packed(const Visit& visit, BufferId retained);

  Builder& build_;
  const std::vector<Visit>& visits_;
  const ScheduleOptions& options_;
  std::vector<Around>& around_;
  std::vector<std::int64_t> unit_bytes_;               // of gathered units, else 0
  std::vector<GatherRule> first_rules_, later_rules_;  // by visit number
  std::vector<BufferId> of_visit_;                     // by visit number, of units that are not kept
  std::vector<BufferId> of_unit_;                      // by unit, of kept ones
  std::vector<BufferId> retained_;                     // by unit
  std::vector<BufferId> staging_;                      // by slot
  std::vector<OpId> retain_;                           // by unit, of the current micro-batch

  // Of the current micro-batch.
  bool first_ = true;
  Position next_, next_fetch_;
  std::vector<OpId> fetch_;                // by slot
  std::array<OpId, lane_count> standing_;  // by lane, the last that brings what stands, until a compute op waited
};

}  // namespace foreshard::plan
