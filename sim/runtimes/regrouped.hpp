#pragma once
#include <functional>
#include <memory>

#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// A wrapper whose units are several blocks each, as `fully_shard([a, b])` or FSDP around a container of them makes, or
/// none but the root. To the model it has a unit for each block: the first block of a unit begins its forward, the last
/// one ends it.
class Regrouped final : public Wrapper {
 public:
  using Make = std::function<std::unique_ptr<Wrapper>(const UnitShapes&)>;
  /// `shapes` of the root and each block; `make` is given those of the units. 0 `blocks` in a unit: all in the root,
  /// whose own begin with the tables in front of the blocks and go on behind them.
  Regrouped(const UnitShapes& shapes, int blocks, const Make& make);

  Tensors before_forward(std::size_t block, Tensors inputs) override;
  void after_forward(std::size_t block, const Tensors& outputs) override;
  const std::vector<Tensor>& parameters(std::size_t block) const override;
  void begin_micro_batch(bool synchronises, bool last) override { units_->begin_micro_batch(synchronises, last); }
  void end_backward() override { units_->end_backward(); }
  bool casts_buffers() const override { return units_->casts_buffers(); }
  std::vector<std::int64_t> updated() const override { return units_->updated(); }
  void before_update() override { units_->before_update(); }
  void after_update() override { units_->after_update(); }
  void zero_grad() override { units_->zero_grad(); }

 private:
  /// Where a block's parameters are.
  struct Place {
    std::size_t unit = 0;
    std::vector<std::size_t> parameters;  ///< among the unit's
    bool begins = false, ends = false;    ///< the unit's forward
  };

  void add(UnitShapes& units, std::size_t block, const ParameterShape& shape);

  std::vector<Place> places_;
  std::unique_ptr<Wrapper> units_;
  mutable std::vector<std::vector<Tensor>> of_blocks_;  ///< that `parameters` gave in this forward
};

}  // namespace foreshard::sim::torch
