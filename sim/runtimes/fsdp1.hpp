#pragma once
#include <set>

#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// `FullyShardedDataParallel` of torch 2.15: a unit's parameters are views of one flat parameter; their gradients are
/// concatenated to a flat one, cast to f32 and reduced. Full shard keeps the original parameters (`use_orig_params`):
/// then the optimizer sees this rank's part of each, and the flat sharded gradient survives `zero_grad` until the next
/// forward. Seen from rank 0.
class Fsdp1 final : public Wrapper {
 public:
  Fsdp1(Eager& eager, const UnitShapes& shapes, const WrapOptions& options);

  Tensor forward(std::size_t unit, const Tensor& x, const Forward& run) override;
  const std::vector<Tensor>& parameters(std::size_t unit) const override { return units_[unit].views; }
  std::vector<std::int64_t> updated() const override;
  void zero_grad() override;

 private:
  struct Unit {
    std::vector<std::int64_t> pieces;  ///< elements of parameters and, with original parameters, padding between them
    std::vector<std::size_t> parameters;  ///< which pieces are parameters
    std::int64_t elements = 0, shard_elements = 0;
    Storage shard, whole, gradient;  ///< shard and its gradient in f32; whole in the compute type
    std::shared_ptr<Leaf> leaf = std::make_shared<Leaf>();
    std::vector<Tensor> views;
    bool is_whole = false;
  };

  bool original_parameters() const { return options_.reshard; }
  bool sharded() const { return options_.world > 1; }
  void add_parameters(Unit& unit, const std::vector<ParameterShape>& shapes);
  void gather(std::size_t unit);
  void make_views(Unit& unit);
  void reshard(Unit& unit);
  void begin_forward(std::size_t unit);
  void before_backward(std::size_t unit);
  void after_backward(std::size_t unit);
  void reduce(std::size_t unit);
  Storage reduction_input(const Unit& unit, const Storage& gradient) const;
  void prefetch(std::size_t unit);

  Eager& eager_;
  WrapOptions options_;
  std::vector<Unit> units_;
  int forwards_ = 0;
  bool gradients_are_zeroed_ = false;
};

}  // namespace foreshard::sim::torch
