#include "sim/runtimes/torch_optimizer.hpp"

#include <array>
#include <numeric>

namespace foreshard::sim::torch {
namespace {

/// Values that AdamW's kernels move for an element: decay, both moments, denominator in three steps, quotient.
constexpr std::array<std::int64_t, 8> adamw_values{2, 3, 2, 3, 2, 2, 2, 4};
/// Of one kernel: gradient, and parameter and moments read and written.
constexpr std::int64_t fused_adamw_values = 7;

}  // namespace

void Optimizer::step() {
  if (state_.empty()) make_state();
  update_ == Update::adamw ? adamw() : sgd();
}

void Optimizer::make_state() {
  for (const std::int64_t n : elements_) {
    if (update_ == Update::adamw)
      state_.push_back(eager_.empty(1, DType::f32)), state_.push_back(eager_.empty(n, type_));
    if (update_ != Update::sgd) state_.push_back(eager_.empty(n, type_));
  }
}

void Optimizer::adamw() {
  const auto moves = [&](std::int64_t values, std::int64_t n) {
    eager_.gpu().copies(values * n * size_bytes(type_), model::OpKind::adamw);
  };
  const std::int64_t all = std::reduce(elements_.begin(), elements_.end());
  if (loop_ == UpdateLoop::fused) return moves(fused_adamw_values, all);
  if (loop_ == UpdateLoop::foreach) {
    std::vector<Storage> denominators;
    for (int made = eager_.traits().second_denominator ? 2 : 1; made > 0; --made)
      for (const std::int64_t n : elements_) denominators.push_back(eager_.empty(n, type_));
    for (const std::int64_t values : adamw_values) moves(values, all);
    return;
  }
  Storage denominator;  // the name holds the last one until the next is there, made by two operators
  for (const std::int64_t n : elements_) {
    const Storage root = eager_.empty(n, type_);
    denominator = eager_.empty(n, type_);
    for (const std::int64_t values : adamw_values) moves(values, n);
  }
}

void Optimizer::sgd() {
  const std::int64_t values = update_ == Update::sgd ? 3 : 6;
  for (const std::int64_t n : elements_) eager_.gpu().copies(values * n * size_bytes(type_), model::OpKind::adamw);
}

}  // namespace foreshard::sim::torch
