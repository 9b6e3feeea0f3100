#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/runtimes/eager.hpp"

namespace foreshard::sim::torch {

/// A parameter: its first dimension and the product of the others; a frozen one has no gradient.
struct ParameterShape {
  std::int64_t rows = 0, cols = 1;
  bool trained = true;
  std::int64_t elements() const { return rows * cols; }
};
/// The parameters of each unit in the order of PyTorch's `named_parameters`; unit 0 is the root, then the blocks.
using UnitShapes = std::vector<std::vector<ParameterShape>>;

enum class BackwardPrefetch : std::uint8_t { pre, post, none };

enum class Collective : std::uint8_t { all_gather, reduce_scatter, all_reduce };

/// DeepSpeed's `zero_optimization`, in numbers of elements; defaults of 0.19.
struct ZeroOptions {
  int stage = 1;
  std::int64_t reduce_bucket = 500'000'000;  ///< gradients that are reduced together
  bool overlaps = false;                     ///< reductions run beside backward (`overlap_comm`)
  bool reduce_scatter = true;                ///< only the owner of a gradient is given its sum
  bool multi_rank_reduction = true;          ///< stages 1, 2: one all-reduce for all owners, not a reduction for each
                                             ///< (`use_multi_rank_bucket_allreduce`)
  // Stage 3.
  std::int64_t prefetch_bucket = 50'000'000;        ///< that each module's visit prefetches
  std::int64_t persistence_threshold = 100'000;     ///< parameters of at most so many elements stay gathered
  std::int64_t max_live = 1'000'000'000;            ///< gathered elements up to which there is prefetching
  std::int64_t max_reuse_distance = 1'000'000'000;  ///< what is used again within so many stays gathered
  std::int64_t sub_group = 1'000'000'000;           ///< of a rank's part, that are updated together
};

/// How a model is wrapped. Strategies: `reshard` frees a block after its forward (full_shard), else it stays until its
/// backward has ended (shard_grad_op); the root always stays.
struct WrapOptions {
  int blocks_per_unit = 1;  ///< FSDP: blocks that are wrapped together, 0: none is, all is in the root
  int world = 1;            ///< ranks of a shard group
  int replicas = 1;         ///< shard groups; a reduction goes on over them
  bool reshard = true;
  int reshard_to = 0;           ///< FSDP2: after its forward a block is resharded over so many ranks, not over all
  DType weights = DType::f32;   ///< of shards, their gradients and the optimizer
  DType compute = DType::bf16;  ///< in which parameters are gathered and computed with
  DType reduce = DType::f32;    ///< in which gradients are reduced
  bool mixed = true;            ///< types are a policy of mixed precision, else those of the weights
  BackwardPrefetch backward_prefetch = BackwardPrefetch::pre;  ///< FSDP1
  bool forward_prefetch = false;                               ///< FSDP1, from the second forward on
  bool limits_gathers = true;  ///< FSDP1: the host issues a gather when the second free before it is done
  int prefetch_depth = 0;      ///< FSDP2: units that each names to prefetch, in both directions; 0 is the default
  int reductions = 1;          ///< FSDP2: inputs of reduce-scatters at once (set_reduce_scatter_max_input_buffers)
  bool async_gathers = false;  ///< FSDP2: gathers' buffers are made on the compute stream (set_unshard_async_op)
  std::int64_t bucket_bytes = 25 << 20;  ///< DDP: of gradients that are reduced together
  bool gradients_are_views = false;      ///< DDP: of their buckets (gradient_as_bucket_view)
  ZeroOptions zero;
  std::function<void(Collective, std::size_t unit)> on_issue = [](Collective, std::size_t) {};
};

/// A data-parallel runtime around a model of eager operators: what it allocates, frees and issues, in order of issue.
class Wrapper {
 public:
  using Tensors = std::vector<Tensor>;
  using Forward = std::function<Tensors(const Tensors&)>;
  virtual ~Wrapper() = default;

  /// A unit's forward with its hooks around `run`, which is given `inputs`, none for the root, and makes outputs. Those
  /// of both that have no gradient are let through.
  Tensors forward(std::size_t unit, const Tensors& inputs, const Forward& run) {
    Tensors outputs = run(before_forward(unit, inputs));
    after_forward(unit, outputs);
    return outputs;
  }
  /// The same for one input and one output.
  Tensor forward(std::size_t unit, const Tensor& x, const std::function<Tensor(const Tensor&)>& run) {
    return forward(unit, Tensors{x}, [&](const Tensors& inputs) { return Tensors{run(inputs[0])}; })[0];
  }
  /// The hooks around a unit's forward: what goes into it, as the unit is given it, and what comes out of it.
  virtual Tensors before_forward(std::size_t unit, Tensors inputs) = 0;
  virtual void after_forward(std::size_t unit, const Tensors& outputs) = 0;
  /// The whole parameters of a unit, whose memory is there while it is gathered.
  virtual const std::vector<Tensor>& parameters(std::size_t unit) const = 0;
  /// Whether backward reduces the gradients, or leaves them whole for a later one (`no_sync`); whether it is the last
  /// of its step.
  virtual void begin_micro_batch(bool synchronises, bool last) { synchronises_ = synchronises, last_ = last; }
  /// What follows the last operator of backward.
  virtual void end_backward() {}
  /// Whether mixed precision casts the model's buffers (FSDP1), or else what each unit is given (FSDP2).
  virtual bool casts_buffers() const = 0;
  /// Elements of each tensor that the optimizer updates on this rank.
  virtual std::vector<std::int64_t> updated() const = 0;
  /// What comes before and after the optimizer's own work.
  virtual void before_update() {}
  virtual void after_update() {}
  /// The sharded gradients are dropped.
  virtual void zero_grad() = 0;

 protected:
  bool synchronises_ = true, last_ = true;
};

}  // namespace foreshard::sim::torch
