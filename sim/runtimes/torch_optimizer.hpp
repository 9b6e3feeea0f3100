#pragma once
#include <vector>

#include "sim/runtimes/eager.hpp"

namespace foreshard::sim::torch {

/// An optimizer of torch.optim.
enum class Update : std::uint8_t { adamw, sgd, sgd_with_momentum };

/// How it goes over tensors: by lists, one by one, or by one kernel that needs no temporaries.
enum class UpdateLoop : std::uint8_t { foreach, one_by_one, fused };

/// What an optimizer keeps and allocates. State is made by the first step, in the parameters' type: AdamW has two
/// moments and an f32 step count for each tensor, SGD with momentum a buffer, plain SGD nothing.
class Optimizer {
 public:
  /// `elements` of each tensor that it updates, of `type`.
  Optimizer(Eager& eager, std::vector<std::int64_t> elements, DType type, Update update, UpdateLoop loop)
      : eager_(eager), elements_(std::move(elements)), type_(type), update_(update), loop_(loop) {}

  void step();

 private:
  void make_state();
  void adamw();
  void sgd();

  Eager& eager_;
  std::vector<std::int64_t> elements_;
  DType type_;
  Update update_;
  UpdateLoop loop_;
  std::vector<Storage> state_;
};

}  // namespace foreshard::sim::torch
