#pragma once
#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// `DistributedDataParallel` of torch 2.15: every rank has all parameters; a hook behind each gradient copies it into
/// a bucket, and buckets are reduced in turn, each as soon as it and those before it are full. Backward ends by waiting
/// for them and copying their parts back to the gradients, unless these are views of them.
///
/// The first step has one bucket of all parameters. From the order in which its gradients came, the forward after it
/// makes the buckets that stay: the first is closed by the gradient that brings it to 1 MiB, others to `bucket_bytes`.
///
/// Frozen parameters are in no bucket.
///
/// With mixed types parameters stay in `weights` and each unit casts its own once per forward, as autocast does; casts
/// live to the end of the unit's backward. All that is computed is then of the narrow type, where autocast would leave
/// norms and residual sums in f32.
///
/// All-reduces run on the stream `replicate`. Source: torch/csrc/distributed/c10d/reducer.cpp,
/// torch/nn/parallel/distributed.py.
class Ddp final : public Wrapper {
 public:
  Ddp(Eager& eager, const UnitShapes& shapes, const WrapOptions& options);

  Tensors before_forward(std::size_t unit, Tensors inputs) override;
  void after_forward(std::size_t unit, const Tensors& outputs) override;
  void end_backward() override;
  const std::vector<Tensor>& parameters(std::size_t unit) const override { return units_[unit].used; }
  bool casts_buffers() const override { return false; }
  std::vector<std::int64_t> updated() const override;
  void zero_grad() override;

 private:
  struct Unit {
    std::vector<Tensor> whole, used;  ///< as the optimizer has them, and as operators are given them
    std::size_t trained = 0;          ///< parameters
    std::size_t awaited = 0;          ///< gradients that have not come yet in this backward
  };
  struct Parameter {
    Tensor tensor;
    std::size_t unit = 0, bucket = 0;
    bool is_trained() const { return tensor.edge.leaf != nullptr; }
  };
  struct Bucket {
    std::vector<std::size_t> parameters;
    Storage contents;
    std::size_t awaited = 0;
    Nanoseconds reduced_at = 0;
  };

  void add_parameter(std::size_t unit, const ParameterShape& shape);
  void make_buckets(const std::vector<std::vector<std::size_t>>& parameters);
  std::vector<std::vector<std::size_t>> buckets_in_order_of_arrival() const;
  void begin_root();
  void cast(Unit& unit);
  void before_backward(std::size_t unit);
  void gradient_came(std::size_t parameter);
  void copy_to_bucket(const Parameter& parameter);
  void reduce_full_buckets();
  void reduce(Bucket& bucket);

  Eager& eager_;
  WrapOptions options_;
  std::vector<Unit> units_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> arrived_;  ///< parameters in the order in which the first step's gradients came
  std::size_t next_bucket_ = 0;       ///< to be reduced
  bool is_rebuilt_ = false;
};

}  // namespace foreshard::sim::torch
