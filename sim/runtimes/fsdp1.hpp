#pragma once
#include <deque>

#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// `FullyShardedDataParallel` of torch 2.15: a unit's parameters are views of one flat parameter; their gradients are
/// concatenated to a flat one, cast to f32 and reduced. Full shard, and any model of which a part is frozen, keeps the
/// original parameters (`use_orig_params`): then the optimizer sees this rank's part of each trained one, and the flat
/// sharded gradient survives `zero_grad` until the next forward. Seen from rank 0.
///
/// Views of a flat parameter have gradients if one of its parameters is trained: those of frozen ones are computed and
/// reduced like others. A unit that is frozen as a whole has none, and is resharded when backward has ended.
///
/// All collectives of a shard group share a communicator. Casts run on the stream `pre_unshard`, gathers on `unshard`
/// and reductions on `reduce`; `limits_gathers` is the rate limiter: each free leaves an event on the compute stream,
/// and when two are there, the host waits for the older one before it allocates for a gather.
class Fsdp1 final : public Wrapper {
 public:
  Fsdp1(Eager& eager, const UnitShapes& shapes, const WrapOptions& options);

  Tensors before_forward(std::size_t unit, Tensors inputs) override;
  void after_forward(std::size_t unit, const Tensors& outputs) override;
  void end_backward() override;
  const std::vector<Tensor>& parameters(std::size_t unit) const override { return units_[unit].views; }
  bool casts_buffers() const override { return true; }
  std::vector<std::int64_t> updated() const override;
  void zero_grad() override;

 private:
  struct Unit {
    std::vector<std::int64_t> pieces;  ///< elements of parameters and, with original parameters, padding between them
    std::vector<std::size_t> parameters;  ///< which pieces are parameters
    std::vector<std::size_t> trained;     ///< and are trained
    std::int64_t elements = 0, shard_elements = 0;
    Storage shard, whole, gradient;  ///< shard and its gradient in f32; whole in the compute type
    std::shared_ptr<Leaf> leaf;      ///< unless all is frozen
    std::vector<Tensor> views;
    bool is_whole = false, is_prefetched = false, awaits_backward = false;
  };

  bool original_parameters() const { return options_.reshard || has_frozen_; }
  bool sharded() const { return options_.world > 1; }
  void add_parameters(Unit& unit, const std::vector<ParameterShape>& shapes);
  Storage cast_shard(const Unit& unit);
  void wait_for_a_free_unit();
  void gather(std::size_t unit);
  void wait_for_gathers();
  void make_views(Unit& unit);
  void reshard(Unit& unit);
  void begin_root();
  void drop_gradients();
  void end_frozen(Unit& unit);
  std::vector<std::int64_t> trained_in_shard(const Unit& unit) const;
  void begin_forward(std::size_t unit);
  void before_backward(std::size_t unit);
  void after_backward(std::size_t unit);
  void reduce(std::size_t unit);
  Storage cast_gradient(const Unit& unit, const Storage& gradient) const;
  Storage padded(const Unit& unit, const Storage& gradient) const;
  void reduce_over_replicas(std::size_t unit);
  void prefetch(std::size_t unit);

  Eager& eager_;
  WrapOptions options_;
  std::vector<Unit> units_;
  std::deque<Nanoseconds> frees_;  ///< when units were or will be free again
  int forwards_ = 0;
  bool gradients_are_zeroed_ = false, has_frozen_ = false;
};

}  // namespace foreshard::sim::torch
