#include <algorithm>

#include "plan/settings_precision.hpp"
#include "sim/planner/axis_lists.hpp"
#include "sim/planner/space.hpp"
#include "sim/planner/usual_axes.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Recompute;

std::optional<Strategy> read_strategy(std::string_view word) {
  try {
    return strategy_of(word);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// "bf16", or "bf16/fp32" with the type of reductions.
std::optional<std::pair<DType, DType>> read_precision(std::string_view word) {
  const auto slash = word.find('/');
  const auto parameters = plan::find_dtype(word.substr(0, slash));
  const auto reduction = slash == word.npos ? parameters : plan::find_dtype(word.substr(slash + 1));
  if (!parameters || !reduction || (*reduction != DType::f32 && *reduction != *parameters)) return std::nullopt;
  return std::pair(*parameters, *reduction);
}

Strategy strategy_in(const Config& config) {
  return read_strategy(config.get<std::string>("parallel.strategy")).value_or(Strategy::full_shard);
}

/// What parallel.reshard_after_forward says, where it is a number of neighbours.
int reshard_in(const plan::Settings& base) { return base.mesh.outer > 1 ? base.mesh.inner : 0; }

}  // namespace

void add_space_keys(Config& config) {
  const auto axis = [&](std::string name, std::string values) {
    config.add("search." + name, "auto", "values to go through: " + std::move(values));
  };
  axis("gpus", "numbers of GPUs; auto = parallel.world_size");
  axis("strategy", "full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_grad_op, zero1");
  axis("shard_degree", "of hybrid strategies; auto = degrees that divide the GPUs, in whole nodes or parts of one");
  axis("reshard_after_forward", "default, or numbers of neighbours; auto = default and a node's GPUs");
  axis("local_batch_size", "sequences of a micro-batch; auto = what divides the global batch");
  axis("accumulation", "reduce, no_sync, reduce_scatter");
  axis("recompute", "none, selective, full");
  axis("recompute_every", "only in every n-th block; auto = 1 and 2");
  axis("precision", "of parameters and reductions: fp32, bf16, bf16/fp32, fp16, fp16/fp32; auto = bf16/fp32 and bf16");
  axis("offload", "none, optimizer, parameters, all");
  axis("prefetch", "of backward: none, post, pre");
  axis("prefetch_depth", "of backward, of pre; auto = 1 and 2");
  axis("forward_prefetch", "auto = 0, 1 and 2");
  axis("limit", "units gathered at once, or unlimited; auto = 2, 3 and unlimited");
  axis("reduce_limit", "unsharded gradients at once, or unlimited; auto = 1 and 2");
}

namespace {

/// Leaves out values of axes that the runtime has not, and refuses them where it is searched alone.
class Restriction {
 public:
  Restriction(Lists& lists, Runtime runtime, bool alone) : lists_(lists), runtime_(runtime), alone_(alone) {}

  template <class T, class Set>
  void to_existing(std::string_view key, std::vector<T>& values, Set set) {
    const std::size_t asked = values.size();
    std::erase_if(values, [&](const T& value) {
      Point point{.runtime = runtime_, .strategy = only_strategy(runtime_).value_or(Strategy::full_shard)};
      set(point, value);
      return !exists(point);
    });
    lists_.refuse(key, alone_ && values.size() < asked,
                  fmt::format("{} has not all of them; leave out those, or the key", name_of(runtime_)));
  }

  /// An axis that runtimes without units do not have at all.
  template <class T>
  void to(std::string_view key, std::vector<T>& values, const std::vector<T>& only) {
    lists_.refuse(key, alone_ && lists_.is_given(key), fmt::format("{} has no such choice", name_of(runtime_)));
    values = only;
  }

 private:
  Lists& lists_;
  Runtime runtime_;
  bool alone_;
};

void restrict_to_existing(Restriction& restriction, Axes& axes) {
  const auto keep = [&](std::string_view key, auto& values, auto set) { restriction.to_existing(key, values, set); };
  keep("search.strategy", axes.strategies, [](Point& p, Strategy s) { p.strategy = s; });
  keep("search.reshard_after_forward", axes.reshard, [](Point& p, int n) { p.reshard = n; });
  keep("search.accumulation", axes.accumulation, [](Point& p, Accumulation a) { p.accumulation = a; });
  keep("search.recompute", axes.recompute, [](Point& p, Recompute::Mode m) { p.recompute = m; });
  keep("search.recompute_every", axes.recompute_every, [](Point& p, int n) { p.recompute_every = n; });
  keep("search.offload", axes.offload, [](Point& p, const plan::Offload& o) { p.offload = o; });
  keep("search.prefetch", axes.prefetch, [](Point& p, BackwardPrefetch b) { p.prefetch = b; });
  keep("search.forward_prefetch", axes.forward_prefetch, [](Point& p, int n) { p.forward_prefetch = n; });
  keep("search.limit", axes.limit, [](Point& p, int n) { p.limit = n; });
  keep("search.reduce_limit", axes.reduce_limit, [](Point& p, int n) { p.reduce_limit = n; });
}

/// DDP reduces in the type of its weights, whatever it computes in.
void reduce_in_full(std::vector<std::pair<DType, DType>>& precision) {
  for (auto& [parameters, reduction] : precision) reduction = DType::f32;
  std::ranges::sort(precision);
  precision.erase(std::unique(precision.begin(), precision.end()), precision.end());
}

void restrict_without_units(Restriction& restriction, const Config& config, const Axes& usual, Axes& axes) {
  restriction.to("search.strategy", axes.strategies, usual.strategies);
  restriction.to("search.shard_degree", axes.shard_degrees, {});
  restriction.to("search.reshard_after_forward", axes.reshard, usual.reshard);
  restriction.to("search.prefetch", axes.prefetch, usual.prefetch);
  restriction.to("search.prefetch_depth", axes.prefetch_depth, usual.prefetch_depth);
  restriction.to("search.forward_prefetch", axes.forward_prefetch, usual.forward_prefetch);
  restriction.to("search.limit", axes.limit, usual.limit);
  restriction.to("search.reduce_limit", axes.reduce_limit, usual.reduce_limit);
  if (axes.runtime == Runtime::ddp) reduce_in_full(axes.precision);
  const bool reduces_as_it_computes = is_zero(axes.runtime) && config.is_default("precision.reduce") &&
                                      !config.is_default("precision.param") &&
                                      config.get<std::string>("search.precision") == "auto";
  if (reduces_as_it_computes) axes.precision.front().second = axes.precision.front().first;
}

/// Reads the axes of one search, a group at a time.
class AxesReader {
 public:
  AxesReader(Lists& lists, const Config& config, const plan::Settings& base, int gpus_per_node, Runtime runtime)
      : lists_(lists),
        config_(config),
        base_(base),
        gpus_per_node_(gpus_per_node),
        usual_(usual_axes_of(runtime, gpus_per_node)) {
    axes_.runtime = runtime;
  }

  Axes read() {
    read_mesh();
    read_batches();
    read_memory();
    read_overlap();
    refuse_what_has_no_axis();
    return axes_;
  }
  const Axes& usual() const { return usual_; }

 private:
  void read_mesh() {
    const int world = base_.mesh.world_size();
    axes_.gpus = lists_.of<int>("search.gpus", {"parallel.world_size"}, world, {world}, number_from<int>(1));
    axes_.strategies = lists_.of<Strategy>("search.strategy", {"parallel.strategy"}, strategy_in(config_),
                                           usual_.strategies, read_strategy);
    axes_.shard_degrees = lists_.of<int>("search.shard_degree", {"parallel.shard_degree"}, base_.mesh.shard_degree(),
                                         usual_degrees(axes_.gpus, gpus_per_node_), number_from<int>(1));
    axes_.reshard = lists_.of<int>("search.reshard_after_forward", {"parallel.reshard_after_forward"},
                                   reshard_in(base_), usual_.reshard, number_from<int>(2, "default", 0));
  }

  void read_batches() {
    axes_.local_batches =
        lists_.of<std::int64_t>("search.local_batch_size", {"train.local_batch_size"}, base_.batch.batch,
                                usual_batches(axes_.gpus, base_.global_batch()), number_from<std::int64_t>(1));
    axes_.accumulation = lists_.of<Accumulation>(
        "search.accumulation", {"parallel.accumulation"}, base_.schedule.accumulation, usual_.accumulation,
        among<Accumulation>({{"reduce", Accumulation::reduce},
                             {"no_sync", Accumulation::no_sync},
                             {"reduce_scatter", Accumulation::reduce_scatter}}));
  }

  void read_memory() {
    const plan::ScheduleOptions& s = base_.schedule;
    using Mode = Recompute::Mode;
    axes_.recompute =
        lists_.of<Mode>("search.recompute", {"activation_checkpoint.mode"}, s.recompute.mode, usual_.recompute,
                        among<Mode>({{"none", Mode::none}, {"selective", Mode::selective}, {"full", Mode::full}}));
    axes_.recompute_every = lists_.of<int>("search.recompute_every", {"activation_checkpoint.every"}, s.recompute.every,
                                           usual_.recompute_every, number_from<int>(1));
    axes_.precision = lists_.of<std::pair<DType, DType>>(
        "search.precision", {"precision.param", "precision.reduce"},
        {s.precision.parameters.value_or(DType::f32), s.precision.reduction.value_or(DType::f32)}, usual_.precision,
        read_precision);
    lists_.refuse(
        "search.precision",
        s.master && std::ranges::any_of(axes_.precision, [&](const auto& p) { return p.first != *s.master; }),
        "precision.master = bf16 keeps parameters in bf16, so they are computed with in it; leave out others");
    const plan::Offload optimizer{.optimizer = true}, parameters{.parameters = true}, all{true, true, true};
    axes_.offload = lists_.of<plan::Offload>(
        "search.offload", {"offload.parameters", "offload.gradients", "offload.optimizer"}, s.offload, usual_.offload,
        among<plan::Offload>({{"none", {}}, {"optimizer", optimizer}, {"parameters", parameters}, {"all", all}}));
  }

  void read_overlap() {
    const plan::ScheduleOptions& s = base_.schedule;
    axes_.prefetch = lists_.of<BackwardPrefetch>(
        "search.prefetch", {"parallel.prefetch"}, s.prefetch, usual_.prefetch,
        among<BackwardPrefetch>(
            {{"none", BackwardPrefetch::none}, {"post", BackwardPrefetch::post}, {"pre", BackwardPrefetch::pre}}));
    const auto depth = number_from<int>(0), limit = number_from<int>(1, "unlimited", plan::unlimited);
    const int forward = axes_.runtime == Runtime::fsdp1 ? std::min(1, s.forward_prefetch) : s.forward_prefetch;
    axes_.prefetch_depth = lists_.of<int>("search.prefetch_depth", {"parallel.prefetch_depth"}, s.prefetch_depth,
                                          usual_.prefetch_depth, depth);
    axes_.forward_prefetch = lists_.of<int>("search.forward_prefetch", {"parallel.forward_prefetch"}, forward,
                                            usual_.forward_prefetch, depth);
    axes_.limit = lists_.of<int>("search.limit", {"parallel.limit"}, s.gather_limit, usual_.limit, limit);
    axes_.reduce_limit =
        lists_.of<int>("search.reduce_limit", {"parallel.reduce_limit"}, s.reduce_limit, usual_.reduce_limit, limit);
  }

  void refuse_what_has_no_axis() {
    const auto reshard = config_.get<std::string>("parallel.reshard_after_forward");
    lists_.refuse("parallel.reshard_after_forward", reshard == "always" || reshard == "never",
                  "a search says this by strategies; set search.strategy, such as full_shard,hybrid_shard for always, "
                  "shard_grad_op,hybrid_shard_grad_op for never");
    lists_.refuse("parallel.reshard_after_backward", !config_.get<bool>("parallel.reshard_after_backward"),
                  "a search frees parameters after backward, or keeps them by zero1; leave it true");
    lists_.refuse("parallel.limit", base_.schedule.gather_limit_bytes != INT64_MAX,
                  "a search counts units; set a number of them");
  }

  Lists& lists_;
  const Config& config_;
  const plan::Settings& base_;
  int gpus_per_node_;
  Axes usual_, axes_;
};

}  // namespace

Axes read_axes(const Config& config, const plan::Settings& base, int gpus_per_node, Runtime runtime, bool alone) {
  Lists lists(config);
  AxesReader reader(lists, config, base, gpus_per_node, runtime);
  Axes axes = reader.read();
  Restriction restriction(lists, runtime, alone);
  if (only_strategy(runtime)) restrict_without_units(restriction, config, reader.usual(), axes);
  if (runtime != Runtime::own) restrict_to_existing(restriction, axes);
  lists.expect_all_read();
  return axes;
}

}  // namespace foreshard::sim::planner
