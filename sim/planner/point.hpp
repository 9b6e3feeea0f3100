#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/settings.hpp"

namespace foreshard::sim::planner {

/// parallel.strategy by name.
enum class Strategy : std::uint8_t { full_shard, shard_grad_op, no_shard, hybrid_shard, hybrid_shard_grad_op, zero1 };
std::string_view name_of(Strategy strategy);
/// Throws InputError(usage), with the nearest name, for one that does not exist.
Strategy strategy_of(std::string_view name);
bool is_hybrid(Strategy strategy);
plan::Keep keep_of(Strategy strategy);

/// Whose steps a search compares.
enum class Runtime : std::uint8_t { own, fsdp1, fsdp2, ddp, zero1, zero2, zero3 };
/// By the name that runtime.profile has for it.
std::string_view name_of(Runtime runtime);
/// None for the name of anything else.
std::optional<Runtime> runtime_named(std::string_view name);
bool is_zero(Runtime runtime);

/// The only strategy of a runtime that does not wrap units: DDP's is no_shard; ZeRO's stages are zero1, shard_grad_op
/// and full_shard, by what they shard. None for those that offer several.
std::optional<Strategy> only_strategy(Runtime runtime);

/// One plan of a search: what the search decides. All else is the user's (`plan::Settings`).
struct Point {
  Runtime runtime = Runtime::own;
  int gpus = 1;
  Strategy strategy = Strategy::full_shard;
  int shard_degree = 1;
  int reshard = 0;  ///< neighbours that a unit is resharded to after forward; 0: as the strategy does
  plan::BackwardPrefetch prefetch = plan::BackwardPrefetch::pre;
  int prefetch_depth = 1, forward_prefetch = 1;
  int limit = 2, reduce_limit = 2;
  plan::Recompute::Mode recompute = plan::Recompute::Mode::none;
  int recompute_every = 1;
  std::int64_t local_batch = 1;
  int micro_batches = 1;
  plan::Accumulation accumulation = plan::Accumulation::reduce;
  DType parameters = DType::f32, reduction = DType::f32;
  plan::Offload offload;
};

plan::Mesh mesh_of(const Point& point);

/// The settings of a point: the user's, with what the search decides.
plan::Settings settings_of(const plan::Settings& base, const Point& point);

/// The point that these settings are; what no point can say (limits in bytes, overrides) is left to the settings.
Point point_of(const plan::Settings& settings);

/// A point as the keys and values that a user gives to `foreshard-plan` for the same plan. All keys that the search may
/// decide, in one order.
using KeyValues = std::vector<std::pair<std::string, std::string>>;
KeyValues keys_of(const Point& point);

/// Of PyTorch's runtimes those keys that they have; a depth of 0 is what they do unless they are told otherwise.
/// "--key=value" of each key whose value is another one in `config`: what a user adds for this plan.
std::vector<std::string> flags_of(const Point& point, const Config& config);

/// Whether all units but the root are kept as the strategy says, and limits count units.
bool is_kept_alike(const plan::ScheduleOptions& options);

/// Of our own runtime, the same plan by the smallest numbers: a prefetch depth that limits do not allow, or a limit
/// that depths do not reach, changes nothing; nor does backward prefetch where parameters are kept until then, or how
/// one GPU reduces. Only right where all units are kept alike, and limits are not in bytes. Of PyTorch's, what they do
/// not know is left at its default.
Point canonical(Point point);

/// Whether a point's runtime has what it decides; of our own, whatever a search may decide.
bool exists(const Point& point);

bool operator==(const Point& a, const Point& b);
bool operator<(const Point& a, const Point& b);  ///< some order

}  // namespace foreshard::sim::planner
