#pragma once
#include <deque>

#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// DeepSpeed 0.19's ZeRO stage 3: of each parameter, of its gradient and of the optimizer's f32 state a rank has an
/// equal part. Parameters of at most `persistence_threshold` elements stay gathered, others are gathered as a visit of
/// their module begins, unless they are there already: each visit prefetches what comes next in the order that the
/// first micro-batch recorded, `prefetch_bucket` elements more, up to `max_live` in all. A visit's end frees them,
/// unless they are used again within `max_reuse_distance`.
///
/// Gradients are copied into a bucket that lives as long as the run. When the next one does not fit, it is copied rank
/// by rank, reduce-scattered, and added to the gradients of the rank's parts.
///
/// Gathers and the copies out of them run on the stream `unshard`, all about reductions on `reduce` if these overlap,
/// else on `compute`; one communicator carries both. The host waits when three of either are under way, and for the
/// last reduction. Source: deepspeed/runtime/zero/{stage3,partitioned_param_coordinator,partition_parameters}.py.
///
/// Modules are known by their parameters: one of two dimensions begins a module. All of a block's are fetched as the
/// block begins and freed as it ends; those of the root stay for the whole micro-batch.
class Zero3 final : public Wrapper {
 public:
  Zero3(Eager& eager, const UnitShapes& shapes, const WrapOptions& options);

  Tensors before_forward(std::size_t unit, Tensors inputs) override;
  void after_forward(std::size_t unit, const Tensors& outputs) override;
  void end_backward() override;
  const std::vector<Tensor>& parameters(std::size_t unit) const override { return units_[unit].whole; }
  bool casts_buffers() const override { return true; }
  std::vector<std::int64_t> updated() const override { return sub_groups_; }
  void before_update() override;
  void after_update() override;
  void zero_grad() override {}

 private:
  /// Some parameters on their way; they are there when one of them is waited for.
  struct Gather {
    std::vector<std::size_t> parameters;
    Storage output;
    bool done = false;
  };
  struct Parameter {
    Tensor tensor;
    std::size_t unit = 0;
    std::int64_t part = 0;
    bool persists = false, is_asked_for = false;
    std::shared_ptr<Gather> gather;
    std::size_t fetched_for = 0;  ///< the last visit that it was prefetched, or would have been
  };
  struct Unit {
    std::vector<Tensor> whole;
    std::vector<std::vector<std::size_t>> modules;
    std::int64_t elements = 0;
    bool in_backward = false;
  };
  struct Use {
    std::size_t parameter, visit;
  };

  void add_parameter(std::size_t unit, const ParameterShape& shape);
  void make_sub_groups();
  void line_up_uses();
  std::size_t unit_of(std::size_t visit) const;
  void fetch(std::size_t unit);
  void prefetch(std::size_t visit);
  void visit(std::size_t unit, std::size_t visit);
  void gather(const std::vector<std::size_t>& parameters);
  void wait_for(Parameter& parameter);
  void release(std::size_t unit, std::size_t visit);
  bool is_used_soon(std::size_t unit, std::size_t visit) const;
  void free(Parameter& parameter);
  void before_backward(std::size_t unit);
  void after_backward(std::size_t unit);
  void gradient_came(std::size_t parameter);
  void reduce_bucket();
  void scatter(std::int64_t elements, std::int64_t parts);
  void limit(std::deque<Nanoseconds>& events);
  Stream reduction_stream() const { return options_.zero.overlaps ? Stream::reduce : Stream::compute; }

  Eager& eager_;
  WrapOptions options_;
  std::vector<Unit> units_;
  std::vector<Parameter> parameters_;
  std::vector<std::int64_t> sub_groups_;  ///< elements of a rank's part that are updated together
  std::int64_t part_ = 0;                 ///< elements of a rank's part of all
  Storage shards_, master_, gradients_, buffer_, update_gradient_;
  std::deque<Use> queue_;  ///< uses of this micro-batch that are still ahead
  std::deque<Nanoseconds> gathered_, reduced_;
  std::vector<std::size_t> bucket_;
  std::int64_t bucket_elements_ = 0, live_ = 0;
  int micro_batches_ = 0;
  bool gradients_are_new_ = true;
};

}  // namespace foreshard::sim::torch
