#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/settings_precision.hpp"
#include "sim/planner/space.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Recompute;

/// Reads lists, and collects what cannot be read.
class Lists {
 public:
  explicit Lists(const Config& config) : config_(config) {}

  /// The values of `key`: its list; or `own`, if the user set one of the plan's keys `own_keys`; or else `usual`.
  template <class T>
  std::vector<T> of(const std::string& key, std::initializer_list<std::string_view> own_keys, T own,
                    std::vector<T> usual, const std::function<std::optional<T>(std::string_view)>& read) {
    const auto list = config_.get<std::string>(key);
    if (list != "auto") return values<T>(key, list, read);
    const bool decided = std::ranges::any_of(own_keys, [&](auto name) { return !config_.is_default(name); });
    return decided ? std::vector<T>{own} : usual;
  }

  /// Keys that the user set to what a search cannot say.
  void refuse(std::string_view key, bool when, std::string_view instead) {
    if (when) problems_.push_back(fmt::format("{} = {}: {}", key, config_.get<std::string>(key), instead));
  }

  bool is_given(std::string_view key) const { return config_.get<std::string>(key) != "auto"; }

  void expect_all_read() const {
    if (!problems_.empty())
      throw InputError(ExitCode::usage,
                       numbered(fmt::format("{} values cannot be searched:", problems_.size()), problems_));
  }

 private:
  template <class T>
  std::vector<T> values(const std::string& key, const std::string& list,
                        const std::function<std::optional<T>(std::string_view)>& read) {
    std::vector<T> found;
    for (const std::string_view word : split(list, ',')) {
      const auto value = read(trimmed(word));
      if (value)
        found.push_back(*value);
      else
        problems_.push_back(fmt::format("{} = {}: '{}' is not one of its values; --help has them", key, list, word));
    }
    return found;
  }

  const Config& config_;
  std::vector<std::string> problems_;
};

template <class T>
std::function<std::optional<T>(std::string_view)> among(std::vector<std::pair<std::string_view, T>> names) {
  return [names = std::move(names)](std::string_view word) -> std::optional<T> {
    const auto found = std::ranges::find(names, word, &std::pair<std::string_view, T>::first);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  };
}

template <class T>
std::function<std::optional<T>(std::string_view)> number_from(T least, std::string_view other = "", T means = 0) {
  return [=](std::string_view word) -> std::optional<T> {
    if (!other.empty() && word == other) return means;
    T value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() && value >= least ? std::optional(value)
                                                                                      : std::nullopt;
  };
}

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

/// The degrees that keep whole groups in a node, or whole nodes in a group.
std::vector<int> usual_degrees(const std::vector<int>& gpus, int gpus_per_node) {
  std::vector<int> degrees;
  const int most = gpus.empty() ? 1 : *std::ranges::max_element(gpus);
  for (int degree = 2; degree < most; ++degree)
    if ((degree % gpus_per_node == 0 || gpus_per_node % degree == 0) &&
        std::ranges::any_of(gpus, [&](int world) { return world % degree == 0 && degree < world; }))
      degrees.push_back(degree);
  return degrees;
}

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d)
    if (number % d == 0) found.push_back(d);
  return found;
}

constexpr std::int64_t most_rows = 64;

/// Sequences of a micro-batch that divide what some number of GPUs gets.
std::vector<std::int64_t> usual_batches(const std::vector<int>& gpus, std::int64_t global_batch) {
  std::vector<std::int64_t> rows;
  for (const int world : gpus)
    for (const std::int64_t d : divisors(global_batch / world, most_rows))
      if (global_batch % world == 0 && std::ranges::find(rows, d) == rows.end()) rows.push_back(d);
  std::ranges::sort(rows);
  return rows;
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

/// What is gone through unless a list or the plan's own key says otherwise; numbers of GPUs and batches not among them.
Axes usual_axes(int gpus_per_node) {
  using Mode = Recompute::Mode;
  return {.strategies = {Strategy::full_shard, Strategy::shard_grad_op, Strategy::hybrid_shard,
                         Strategy::hybrid_shard_grad_op, Strategy::zero1, Strategy::no_shard},
          .reshard = {0, gpus_per_node},
          .accumulation = {Accumulation::reduce, Accumulation::no_sync, Accumulation::reduce_scatter},
          .recompute = {Mode::none, Mode::selective, Mode::full},
          .recompute_every = {1, 2},
          .precision = {{DType::bf16, DType::f32}, {DType::bf16, DType::bf16}},
          .offload = {{}, {.optimizer = true}, {true, true, true}},
          .prefetch = {BackwardPrefetch::pre, BackwardPrefetch::post, BackwardPrefetch::none},
          .prefetch_depth = {1, 2},
          .forward_prefetch = {1, 0, 2},
          .limit = {2, 3, plan::unlimited},
          .reduce_limit = {2, 1}};
}

/// Those that DDP and ZeRO have: DDP reduces in fp32, ZeRO in every micro-batch or none.
Axes usual_axes_without_units(Axes usual) {
  const bool ddp = usual.runtime == Runtime::ddp;
  usual.strategies = {*only_strategy(usual.runtime)};
  usual.accumulation = {Accumulation::reduce};
  if (ddp) usual.accumulation.push_back(Accumulation::no_sync);
  if (ddp) usual.precision = {{DType::bf16, DType::f32}};
  usual.prefetch = {BackwardPrefetch::pre};
  usual.prefetch_depth = usual.forward_prefetch = {1}, usual.limit = {2};
  return usual;
}

/// Those that PyTorch's FSDP has. FSDP1 prefetches one unit or none, and either limits gathers or does not; FSDP2 has
/// only the number of units that each names to prefetch.
Axes usual_axes_of(Runtime runtime, int gpus_per_node) {
  Axes usual = usual_axes(gpus_per_node);
  usual.runtime = runtime;
  if (runtime == Runtime::own) return usual;
  std::erase(usual.accumulation, Accumulation::reduce_scatter);
  std::erase(usual.recompute, Recompute::Mode::selective);
  usual.reshard = {0}, usual.recompute_every = {1}, usual.offload = {{}}, usual.reduce_limit = {2};
  if (only_strategy(runtime)) return usual_axes_without_units(usual);
  const bool fsdp1 = runtime == Runtime::fsdp1;
  std::erase_if(usual.strategies, [&](Strategy s) { return !exists({.runtime = runtime, .strategy = s}); });
  usual.prefetch_depth = fsdp1 ? std::vector{1} : std::vector{0, 1, 2};
  usual.forward_prefetch = fsdp1 ? std::vector{0, 1} : std::vector{0};
  usual.limit = fsdp1 ? std::vector{2, plan::unlimited} : std::vector{2};
  if (!fsdp1) usual.prefetch = {BackwardPrefetch::pre};
  return usual;
}

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

}  // namespace

Axes read_axes(const Config& config, const plan::Settings& base, int gpus_per_node, Runtime runtime, bool alone) {
  Lists lists(config);
  const plan::ScheduleOptions& s = base.schedule;
  const Axes usual = usual_axes_of(runtime, gpus_per_node);
  Axes axes{.runtime = runtime};
  const int world = base.mesh.world_size();
  axes.gpus = lists.of<int>("search.gpus", {"parallel.world_size"}, world, {world}, number_from<int>(1));
  axes.strategies = lists.of<Strategy>("search.strategy", {"parallel.strategy"}, strategy_in(config), usual.strategies,
                                       read_strategy);
  axes.shard_degrees = lists.of<int>("search.shard_degree", {"parallel.shard_degree"}, base.mesh.shard_degree(),
                                     usual_degrees(axes.gpus, gpus_per_node), number_from<int>(1));
  axes.reshard = lists.of<int>("search.reshard_after_forward", {"parallel.reshard_after_forward"}, reshard_in(base),
                               usual.reshard, number_from<int>(2, "default", 0));
  axes.local_batches =
      lists.of<std::int64_t>("search.local_batch_size", {"train.local_batch_size"}, base.batch.batch,
                             usual_batches(axes.gpus, base.global_batch()), number_from<std::int64_t>(1));
  axes.accumulation =
      lists.of<Accumulation>("search.accumulation", {"parallel.accumulation"}, s.accumulation, usual.accumulation,
                             among<Accumulation>({{"reduce", Accumulation::reduce},
                                                  {"no_sync", Accumulation::no_sync},
                                                  {"reduce_scatter", Accumulation::reduce_scatter}}));
  using Mode = Recompute::Mode;
  axes.recompute =
      lists.of<Mode>("search.recompute", {"activation_checkpoint.mode"}, s.recompute.mode, usual.recompute,
                     among<Mode>({{"none", Mode::none}, {"selective", Mode::selective}, {"full", Mode::full}}));
  axes.recompute_every = lists.of<int>("search.recompute_every", {"activation_checkpoint.every"}, s.recompute.every,
                                       usual.recompute_every, number_from<int>(1));
  axes.precision = lists.of<std::pair<DType, DType>>(
      "search.precision", {"precision.param", "precision.reduce"},
      {s.precision.parameters.value_or(DType::f32), s.precision.reduction.value_or(DType::f32)}, usual.precision,
      read_precision);
  lists.refuse("search.precision",
               s.master && std::ranges::any_of(axes.precision, [&](const auto& p) { return p.first != *s.master; }),
               "precision.master = bf16 keeps parameters in bf16, so they are computed with in it; leave out others");
  const plan::Offload optimizer{.optimizer = true}, parameters{.parameters = true}, all{true, true, true};
  axes.offload = lists.of<plan::Offload>(
      "search.offload", {"offload.parameters", "offload.gradients", "offload.optimizer"}, s.offload, usual.offload,
      among<plan::Offload>({{"none", {}}, {"optimizer", optimizer}, {"parameters", parameters}, {"all", all}}));
  axes.prefetch = lists.of<BackwardPrefetch>(
      "search.prefetch", {"parallel.prefetch"}, s.prefetch, usual.prefetch,
      among<BackwardPrefetch>(
          {{"none", BackwardPrefetch::none}, {"post", BackwardPrefetch::post}, {"pre", BackwardPrefetch::pre}}));
  const auto depth = number_from<int>(0), limit = number_from<int>(1, "unlimited", plan::unlimited);
  axes.prefetch_depth = lists.of<int>("search.prefetch_depth", {"parallel.prefetch_depth"}, s.prefetch_depth,
                                      usual.prefetch_depth, depth);
  axes.forward_prefetch = lists.of<int>(
      "search.forward_prefetch", {"parallel.forward_prefetch"},
      runtime == Runtime::fsdp1 ? std::min(1, s.forward_prefetch) : s.forward_prefetch, usual.forward_prefetch, depth);
  axes.limit = lists.of<int>("search.limit", {"parallel.limit"}, s.gather_limit, usual.limit, limit);
  axes.reduce_limit =
      lists.of<int>("search.reduce_limit", {"parallel.reduce_limit"}, s.reduce_limit, usual.reduce_limit, limit);
  const auto reshard = config.get<std::string>("parallel.reshard_after_forward");
  lists.refuse("parallel.reshard_after_forward", reshard == "always" || reshard == "never",
               "a search says this by strategies; set search.strategy, such as full_shard,hybrid_shard for always, "
               "shard_grad_op,hybrid_shard_grad_op for never");
  lists.refuse("parallel.reshard_after_backward", !config.get<bool>("parallel.reshard_after_backward"),
               "a search frees parameters after backward, or keeps them by zero1; leave it true");
  lists.refuse("parallel.limit", s.gather_limit_bytes != INT64_MAX, "a search counts units; set a number of them");
  Restriction restriction(lists, runtime, alone);
  if (only_strategy(runtime)) restrict_without_units(restriction, config, usual, axes);
  if (runtime != Runtime::own) restrict_to_existing(restriction, axes);
  lists.expect_all_read();
  return axes;
}

}  // namespace foreshard::sim::planner
