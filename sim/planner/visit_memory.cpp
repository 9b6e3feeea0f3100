#include "sim/planner/visit_memory.hpp"

#include <algorithm>

namespace foreshard::sim::planner {
namespace {

using plan::BackwardPrefetch;
using plan::GroupKind;
using plan::Keep;
using plan::OpKind;

double d(std::int64_t n) { return static_cast<double>(n); }

UnitSizes sizes_of(const plan::FlatParameter& flat, const plan::Mesh& mesh, const plan::Offload& offload,
                   DType master) {
  UnitSizes sizes;
  sizes.gathered = d(flat.whole_bytes(master, offload.parameters));
  if (mesh.world_size() > 1 && flat.has_gradient())
    sizes.gradient = d(flat.trainable.padded_elements * size_bytes(flat.reduced));
  if (mesh.outer > 1 && flat.shard_degree > 1) sizes.retained = sizes.gathered / mesh.inner;
  return sizes;
}

/// Goes through the visits of a micro-batch and adds up what is alive besides activations.
class Visits {
 public:
  Visits(const GraphFacts& facts, const Sharded& sharded, const Point& point, bool alike)
      : facts_(facts),
        sharded_(sharded),
        point_(point),
        rows_(d(point.local_batch)),
        keep_(alike ? keep_of(point.strategy) : Keep::visit),
        alike_(alike),
        several_(point.micro_batches > 1),
        no_sync_(point.accumulation == plan::Accumulation::no_sync || point.strategy == Strategy::zero1) {}

  double most() {
    begin();
    double most = 0;
    for (std::size_t i = 0; i < facts_.visits.size(); ++i) {
      enter(i);
      most = std::max(most, always_ + kept_ + retained_ + ahead(facts_.visits[i]) + before(i) + own(i));
      leave(i);
    }
    return most;
  }

 private:
  const UnitSizes& sizes(std::uint32_t unit) const { return sharded_.units[unit]; }
  bool is_root(std::uint32_t unit) const { return unit == model::root_unit.value; }
  bool lives_on(std::uint32_t unit) const { return several_ && (is_root(unit) || keep_ == Keep::step); }
  bool is_kept(std::uint32_t unit) const { return is_root(unit) || keep_ != Keep::visit; }

  /// What lives through all micro-batches.
  void begin() {
    for (std::uint32_t unit = 0; unit < facts_.units.size(); ++unit) {
      if (lives_on(unit) && facts_.units[unit].read_first >= 0) always_ += sizes(unit).gathered;
      if (several_ && no_sync_ && facts_.units[unit].gradient_first >= 0) always_ += sizes(unit).gradient;
    }
  }

  void enter(std::size_t i) {
    const VisitFacts& visit = facts_.visits[i];
    for (const std::uint32_t unit : facts_.first_read[i])
      if (is_kept(unit) && !lives_on(unit)) kept_ += sizes(unit).gathered;
    for (const std::uint32_t unit : facts_.last_read[i])
      if (is_kept(unit) && !lives_on(unit)) kept_ -= sizes(unit).gathered;
    if (visit.number >= 0 && visit.closes && !visit.opens && keep_ == Keep::visit && alike_)
      retained_ -= sizes(visit.unit).retained;
  }

  void leave(std::size_t i) {
    const VisitFacts& visit = facts_.visits[i];
    if (visit.number >= 0 && visit.opens && !visit.closes && keep_ == Keep::visit && alike_)
      retained_ += sizes(visit.unit).retained;
  }

  /// Activations with the visit's own parameters and gradient, as far as they are alive at the same op.
  double own(std::size_t i) const {
    const VisitFacts& visit = facts_.visits[i];
    const UnitFacts& unit = facts_.units[visit.unit];
    const int at = static_cast<int>(i);
    const bool transient = !is_kept(visit.unit) || unit.read_last == at;
    const double parameters = transient && !lives_on(visit.unit) ? sizes(visit.unit).gathered : 0;
    const double gradient = several_ && no_sync_ ? 0 : sizes(visit.unit).gradient;
    const bool begun = unit.gradient_first >= 0 && unit.gradient_first < at && at <= unit.gradient_last;
    double most = 0;
    for (const bool reads : {false, true})
      for (const bool begins : {false, true}) {
        const double activations = visit.live_bytes[reads][begins] * rows_;
        if (activations < 0) continue;
        most = std::max(most, activations + (reads ? parameters : 0) + (begins || begun ? gradient : 0));
      }
    return most + (is_root(visit.unit) ? 0 : long_gradient(at));
  }

  /// The root's gradient lives from the head's backward to the tables'.
  double long_gradient(int at) const {
    const UnitFacts& root = facts_.units[0];
    const bool alive = root.gradient_first >= 0 && root.gradient_first < at && at <= root.gradient_last;
    return alive && !(several_ && no_sync_) ? sizes(0).gradient : 0;
  }

  int depth(const VisitFacts& visit) const {
    const int asked = !visit.backward                            ? point_.forward_prefetch
                      : point_.prefetch == BackwardPrefetch::pre ? point_.prefetch_depth
                                                                 : 0;
    return std::min(asked, point_.limit - 1);
  }

  /// Units that may be gathered for visits behind this one. All but the last are gathered from what was retained of
  /// them before the last is.
  double ahead(const VisitFacts& visit) const {
    if (keep_ != Keep::visit || !alike_) return 0;
    const int now = visit.number >= 0 ? visit.number : visit.next_number;
    double bytes = 0, retained = 0;
    for (int w = visit.number >= 0 ? now + 1 : now; w < static_cast<int>(facts_.numbered.size()); ++w) {
      const VisitFacts& next = facts_.visits[static_cast<std::size_t>(facts_.numbered[static_cast<std::size_t>(w)])];
      if (std::max(w - 1 - depth(next), next.previous) >= now) break;
      bytes += sizes(next.unit).gathered - retained;
      retained = next.backward ? sizes(next.unit).retained : 0;
    }
    return bytes;
  }

  /// The gradient of the visit before may still be in reduction.
  double before(std::size_t i) const {
    const VisitFacts& visit = facts_.visits[i];
    const int number = (visit.number >= 0 ? visit.number : visit.next_number) - 1;
    if (number < 0 || point_.prefetch == BackwardPrefetch::none || (several_ && no_sync_)) return 0;
    if (visit.number >= 0 && point_.reduce_limit < 2) return 0;
    const int at = facts_.numbered[static_cast<std::size_t>(number)];
    const std::uint32_t unit = facts_.visits[static_cast<std::size_t>(at)].unit;
    return facts_.units[unit].gradient_last == at ? sizes(unit).gradient : 0;
  }

  const GraphFacts& facts_;
  const Sharded& sharded_;
  const Point& point_;
  double rows_;
  Keep keep_;
  bool alike_, several_, no_sync_;
  double always_ = 0, kept_ = 0, retained_ = 0;
};

}  // namespace

void Sharded::Placed::add(const plan::Op& op, DType type, OpTimes& times) {
  device_s += times.of(op, type);
  host_s += times.in_host(op, type);
}

Sharded shard_on(std::vector<plan::FlatParameter> units, const plan::Mesh& mesh, const plan::ScheduleOptions& options) {
  Sharded sharded{.flat = std::move(units), .mesh = mesh, .master = options.master.value_or(DType::f32)};
  for (const plan::FlatParameter& flat : sharded.flat) {
    sharded.units.push_back(sizes_of(flat, mesh, options.offload, sharded.master));
    sharded.gathers_units |= sharded.units.size() > 1 && sharded.units.back().gathered > 0;
    sharded.parameter_bytes += flat.part_bytes(flat.shard_degree, sharded.master);
    sharded.gradient_bytes += flat.shard_of(flat.trainable.padded_elements) * size_bytes(DType::f32);
  }
  return sharded;
}

void add_times(Sharded& sharded, const GraphFacts& facts, OpTimes& times, OpKind update) {
  const plan::Mesh& mesh = sharded.mesh;
  const GroupKind again = mesh.outer > 1 ? GroupKind::inner : GroupKind::shard;
  for (std::size_t u = 0; u < sharded.flat.size(); ++u) {
    const plan::FlatParameter& flat = sharded.flat[u];
    const UnitFacts& unit = facts.units[u];
    const bool shards = flat.shard_degree > 1, first_read = facts.units[0].read_first == 0;
    double gather = 0, regather = 0;
    for (const plan::FlatRange& range : flat.ranges()) {
      if (!shards || !flat.used) continue;
      gather += times.collective(OpKind::all_gather, GroupKind::shard, range.padded_elements, flat.gathered);
      regather += times.collective(OpKind::all_gather, again, range.padded_elements, flat.gathered);
    }
    if (shards && flat.used) {
      const std::int64_t words = flat.packed.padded_elements;
      gather += times.collective(OpKind::all_gather, GroupKind::shard, words, DType::i32);
      regather += times.collective(OpKind::all_gather, again, words, DType::i32);
    }
    if (u == 0 && first_read) sharded.root_gather_s = gather;
    if (u > 0) {
      sharded.gathers_s += unit.forward_visits * gather;
      sharded.regathers_s += unit.backward_visits * regather;
      sharded.longest_gather_s = std::max(sharded.longest_gather_s, gather);
      sharded.longest_regather_s = std::max(sharded.longest_regather_s, regather);
    }
    if (!flat.has_gradient()) continue;

    const std::int64_t whole = flat.trainable.padded_elements, shard = flat.shard_of(whole);
    const double reduce = shards ? times.collective(OpKind::reduce_scatter, GroupKind::shard, whole, flat.reduced) : 0;
    const bool by_replicas = flat.shard_degree == mesh.shard_degree();
    const double replicate =
        by_replicas ? times.collective(OpKind::all_reduce, GroupKind::replica, shard, flat.reduced) : 0;
    if (u > 0) {
      sharded.first_stages_s += shards ? reduce : replicate;
      sharded.longest_first_stage_s = std::max(sharded.longest_first_stage_s, shards ? reduce : replicate);
    }
    sharded.reduces_s += reduce;
    sharded.replicates_s += replicate;
    plan::Op op{.kind = update, .phase = plan::Phase::update};
    op.sizes.rows = shard;
    sharded.update.add(op, sharded.master, times);
    if (u > 0 || unit.gradient_last != static_cast<int>(facts.visits.size()) - 1) continue;
    sharded.root_reduce_s = reduce + replicate;
    op.kind = OpKind::grad_norm;
    op.cost.read_bytes = d(shard * size_bytes(DType::f32));
    sharded.last_norm.add(op, DType::f32, times);
  }
}

double most_alive(const GraphFacts& facts, const Sharded& sharded, const Point& point, bool alike) {
  return Visits(facts, sharded, point, alike).most();
}

}  // namespace foreshard::sim::planner
