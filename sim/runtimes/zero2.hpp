#pragma once
#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// DeepSpeed 0.19's ZeRO stages 1 and 2: every rank has all parameters, views of one flat tensor of the compute type;
/// of an f32 copy and the optimizer's state it has its part. Gradients are copied into a bucket of a fixed size, that
/// is made anew in each backward (two where reductions overlap), and reduced when the next one does not fit. What a
/// rank owns is copied out; stage 2 drops the rest at once, stage 1 at the end. After the update one all-gather makes
/// the flat tensor whole.
///
/// Stage 2 reduces in every micro-batch, from hooks. Stage 1 does so in the last one, and without overlap only behind
/// backward, so that all gradients are there at once.
///
/// Reductions run on the stream `reduce` where they overlap, else on `compute`; all collectives share a communicator.
/// With `multi_rank_reduction` a bucket is copied and all-reduced whole, though each rank needs its part only.
/// Source: deepspeed/runtime/zero/stage_1_and_2.py.
class Zero2 final : public Wrapper {
 public:
  Zero2(Eager& eager, const UnitShapes& shapes, const WrapOptions& options);

  Tensors before_forward(std::size_t unit, Tensors inputs) override;
  void after_forward(std::size_t unit, const Tensors& outputs) override;
  void end_backward() override;
  const std::vector<Tensor>& parameters(std::size_t unit) const override { return units_[unit]; }
  bool casts_buffers() const override { return true; }
  std::vector<std::int64_t> updated() const override { return {part_}; }
  void before_update() override;
  void after_update() override;
  void zero_grad() override {}

 private:
  struct Parameter {
    Tensor tensor;
    std::size_t unit = 0;
    std::int64_t owned = 0;  ///< of its elements, by this rank
  };

  bool reduces_in_hooks() const { return options_.zero.stage == 2 || options_.zero.overlaps; }
  bool reduces_now() const { return options_.zero.stage == 2 || last_; }
  void add_parameters(const UnitShapes& shapes);
  void make_buffers();
  void gradient_came(std::size_t parameter);
  void add_to_bucket(std::size_t parameter);
  void reduce_bucket();
  void start_reduction(const Storage& input, std::int64_t elements);
  void all_reduce(std::int64_t bytes);
  void hand_out();
  void keep_owned(Parameter& parameter);

  Eager& eager_;
  WrapOptions options_;
  std::vector<std::vector<Tensor>> units_;
  std::vector<Parameter> parameters_;
  std::int64_t part_ = 0;      ///< elements of the flat tensor that a rank owns
  std::int64_t in_owned_ = 0;  ///< elements of all parameters of which it owns some
  Storage flat_, master_;
  std::vector<Storage> buffers_;  ///< for buckets, while there is a backward
  std::size_t buffer_ = 0;        ///< that is filled
  std::vector<std::size_t> bucket_;
  std::int64_t bucket_elements_ = 0;
  Storage owned_, averaged_;  ///< gradients of this micro-batch and of all so far
  Storage update_gradient_;   ///< in f32
};

}  // namespace foreshard::sim::torch
