#include "sim/planner/bound.hpp"

#include <algorithm>

#include "plan/build.hpp"
#include "sim/cost/stragglers.hpp"
#include "sim/planner/op_times.hpp"
#include "sim/planner/visit_memory.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Accumulation;
using plan::Keep;

double d(std::int64_t n) { return static_cast<double>(n); }

/// A micro-batch of `rows` sequences instead of one.
plan::Op with_rows(const OpFacts& facts, std::int64_t rows) {
  plan::Op op = facts.op;
  const model::Sizes& more = facts.more;
  op.sizes.rows += (rows - 1) * more.rows, op.sizes.cols += (rows - 1) * more.cols;
  op.sizes.inner += (rows - 1) * more.inner, op.sizes.batch += (rows - 1) * more.batch;
  op.sizes.seq += (rows - 1) * more.seq, op.sizes.heads += (rows - 1) * more.heads;
  op.cost.read_bytes = facts.read_bytes * d(rows) + facts.fixed_read_bytes;
  op.cost.written_bytes = facts.written_bytes * d(rows) + facts.fixed_written_bytes;
  return op;
}

/// Unsharded gradients of several micro-batches add up in the type of the shards.
DType reduced_type(const Point& point) {
  const bool adds_up = point.accumulation == Accumulation::no_sync || point.strategy == Strategy::zero1;
  return adds_up && point.micro_batches > 1 ? DType::f32 : point.reduction;
}

/// Tokens, if the model reads them, and targets.
std::int64_t batch_bytes(const model::Graph& graph) {
  const bool reads_tokens = std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
    return std::ranges::find(op.inputs, graph.tokens) != op.inputs.end();
  });
  const std::int64_t values = (reads_tokens ? graph[graph.tokens].elements : 0) + graph[graph.targets].elements;
  return values * size_bytes(DType::i32);
}

}  // namespace

Bounds::Bounds(const plan::Settings& base, const Cluster& cluster)
    : base_(base),
      cluster_(cluster),
      forward_(model::build(base.model, {1, base.batch.seq})),
      forward_of_two_(model::build(base.model, {2, base.batch.seq})),
      sequence_bytes_(batch_bytes(forward_)) {}

Bound Bounds::of(const Point& point) {
  return {.memory_bytes = live_bytes(point) + device_bytes_besides(mesh_of(point)), .seconds = step_seconds(point)};
}

Bounds::GraphKey Bounds::graph_key(const Point& point) {
  return {point.parameters, reduced_type(point), point.recompute, point.recompute_every, point.gpus == 1};
}

const GraphFacts& Bounds::facts(const Point& point) {
  const GraphKey key = graph_key(point);
  const auto found = facts_.find(key);
  if (found != facts_.end()) return found->second;
  const plan::Settings settings = settings_of(base_, point);
  const auto training = [&](const model::Graph& forward) {
    return plan::build_training_graph(forward, settings.mesh, settings.schedule);
  };
  return facts_.emplace(key, facts_of(training(forward_), training(forward_of_two_))).first->second;
}

const model::Graph& Bounds::typed(const Point& point, const plan::Settings& settings) {
  const TypeKey key{point.parameters, reduced_type(point), point.gpus == 1};
  const auto found = typed_.find(key);
  if (found != typed_.end()) return found->second;
  const model::Graph used = plan::leave_out(plan::wrap(forward_, base_.schedule.wrap), base_.schedule.left_out);
  return typed_.emplace(key, plan::set_types(used, settings.mesh, settings.schedule)).first->second;
}

const Sharded& Bounds::sharded(const Point& point) {
  const plan::Mesh mesh = mesh_of(point);
  const MeshKey key{point.parameters,   reduced_type(point), point.gpus,
                    point.shard_degree, mesh.inner,          point.offload.parameters};
  const auto found = sharded_.find(key);
  if (found != sharded_.end()) return found->second;
  const plan::Settings settings = settings_of(base_, point);
  Sharded all = shard_on(plan::shard(typed(point, settings), point.shard_degree), mesh, settings.schedule);
  OpTimes times(cluster_, mesh);
  add_times(all, facts(point), times, base_.schedule.update);
  return sharded_.emplace(key, std::move(all)).first->second;
}

double Bounds::slowest_rank_factor(int gpus) {
  const auto found = slowest_.find(gpus);
  if (found != slowest_.end()) return found->second;
  return slowest_[gpus] = cost::slowest_rank_factor(cost::gpu_profile().jitter_sigma.value, gpus);
}

double Bounds::compute_seconds(const Point& point) {
  const std::pair key{graph_key(point), point.local_batch};
  const auto found = compute_.find(key);
  if (found != compute_.end()) return found->second;
  OpTimes times(cluster_, {});
  double seconds = 0;
  for (const OpFacts& op : facts(point).ops) seconds += op.count * times.of(with_rows(op, point.local_batch), op.dtype);
  return compute_[key] = seconds;
}

std::int64_t Bounds::live_bytes(const Point& point) {
  const Sharded& all = sharded(point);
  std::int64_t state = point.local_batch * sequence_bytes_;
  if (!point.offload.parameters) state += all.parameter_bytes;
  if (!point.offload.gradients) state += all.gradient_bytes;
  if (!point.offload.optimizer) state += model::moment_count(base_.schedule.update) * all.gradient_bytes;
  return state + static_cast<std::int64_t>(most_alive(facts(point), all, point, is_kept_alike(base_.schedule)));
}

namespace {

/// How often a step does what it may do for each micro-batch.
struct Times {
  explicit Times(const Point& p)
      : micro_batches(p.micro_batches),
        no_sync(p.accumulation == Accumulation::no_sync || p.strategy == Strategy::zero1),
        reduces(no_sync ? 1 : micro_batches),
        replicates(no_sync || p.accumulation == Accumulation::reduce_scatter ? 1 : micro_batches),
        gathers(keep_of(p.strategy) == Keep::step ? 1 : micro_batches),
        regathers(keep_of(p.strategy) == Keep::visit ? micro_batches : 0) {}
  double micro_batches;
  bool no_sync;
  double reduces, replicates, gathers, regathers;
};

/// How often the root's own operators come between those of other units, as between T5's encoder and decoder.
int root_between(const GraphFacts& facts, bool backward) {
  int between = 0, since = -1;
  for (const VisitFacts& visit : facts.visits) {
    if (visit.backward != backward) continue;
    if (visit.number < 0 && since >= 0) ++since;
    if (visit.number >= 0) between += std::min(1, std::max(0, since)), since = 0;
  }
  return between;
}

/// What compute waits for because nothing is gathered ahead, or no second gradient may be in reduction. Around the ends
/// of a micro-batch, and behind the root's operators within it, one of each may still be hidden.
double in_turn_seconds(const Sharded& all, const Point& p, const Times& times, const GraphFacts& facts) {
  using plan::BackwardPrefetch;
  const bool transient = keep_of(p.strategy) == Keep::visit, no_room = transient && p.limit == 1;
  const int forward_ends = 1 + root_between(facts, false), backward_ends = 1 + root_between(facts, true);
  const auto all_but = [](double sum, int hidden, double longest) { return std::max(0.0, sum - hidden * longest); };
  const double gathers = times.gathers * all_but(all.gathers_s, forward_ends, all.longest_gather_s);
  const double regathers = times.regathers * all_but(all.regathers_s, backward_ends, all.longest_regather_s);
  const double reduces = times.reduces * all_but(all.first_stages_s, backward_ends, all.longest_first_stage_s);
  const double forward = p.forward_prefetch == 0 || no_room ? gathers : 0;
  if (transient && all.gathers_units && p.prefetch == BackwardPrefetch::none) return forward + regathers + reduces;
  const bool ahead = p.prefetch == BackwardPrefetch::pre && p.prefetch_depth > 0 && !no_room;
  return forward + std::max(ahead ? 0 : regathers, p.reduce_limit == 1 ? reduces : 0);
}

/// Shards are updated in host memory if all of them are there, else on the device; norms are taken where gradients are.
double update_seconds(const Sharded& all, const plan::Offload& offload, int moments, double slowest) {
  const bool in_host = offload.parameters && offload.gradients && (offload.optimizer || moments == 0);
  const double norm = offload.gradients ? all.last_norm.host_s : slowest * all.last_norm.device_s;
  return norm + (in_host ? all.update.host_s : slowest * all.update.device_s);
}

}  // namespace

double Bounds::step_seconds(const Point& point) {
  const Sharded& all = sharded(point);
  const Times times(point);
  const bool alike = is_kept_alike(base_.schedule);
  const double slowest = slowest_rank_factor(point.gpus);
  const double compute = slowest * times.micro_batches * compute_seconds(point);
  const double update = update_seconds(all, point.offload, model::moment_count(base_.schedule.update), slowest);
  const double chain = all.root_gather_s + compute + all.root_reduce_s + update +
                       (alike ? in_turn_seconds(all, point, times, facts(point)) : 0);
  const double visits = times.gathers * all.gathers_s + times.regathers * all.regathers_s;
  const double gathers = all.root_gather_s + (alike ? visits : 0);
  return std::max({chain, gathers, times.reduces * all.reduces_s, times.replicates * all.replicates_s});
}

}  // namespace foreshard::sim::planner
