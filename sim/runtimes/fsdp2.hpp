#pragma once
#include <deque>

#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// `fully_shard` of torch.distributed.fsdp, torch 2.15: parameters are sharded one by one along their first dimension,
/// padded to equal shards; a gather's output is copied out to the parameters, a reduction's input is copied in from
/// their gradients. In backward each unit issues the gather of the one before it,
/// or of as many as it names. Frozen parameters are gathered with the others and have no gradients, so that only those
/// of trained ones are reduced; a unit without any is resharded only. Seen from rank 0.
///
/// The cast and the copy into a gather's input run on the stream `pre_unshard`, gathers on `unshard`, copies out of
/// them and into a reduction's input on `compute`, reductions on `reduce`, all-reduces on `replicate`. Nothing blocks
/// the host: a gather waits for copies out of earlier ones, the copy into a reduction for the reduction before it, or
/// for that of `reductions` units before. One communicator carries all gathers and reduce-scatters, as they are of one
/// process group.
///
/// With `async_gathers` the copy into a gather's input runs on `compute`, whose memory it takes; before PyTorch 2.7 its
/// buffers are recorded on the communicator.
class Fsdp2 final : public Wrapper {
 public:
  Fsdp2(Eager& eager, const UnitShapes& shapes, const WrapOptions& options);

  Tensors before_forward(std::size_t unit, Tensors inputs) override;
  void after_forward(std::size_t unit, const Tensors& outputs) override;
  const std::vector<Tensor>& parameters(std::size_t unit) const override { return units_[unit].whole; }
  void end_backward() override;
  bool casts_buffers() const override { return false; }
  std::vector<std::int64_t> updated() const override;
  void zero_grad() override;

 private:
  struct Unit {
    std::vector<ParameterShape> shapes;
    std::vector<Storage> shards;
    std::vector<Tensor> whole;
    std::int64_t shard_elements = 0, trained_elements = 0;  ///< padded: of all, and of trained parameters
    Storage gathered;                                       ///< output of a gather that is not copied out yet
    Storage gradient;                                       ///< of the shards
    std::vector<Storage> kept;  ///< parts of the parameters between forward and backward (`reshard_to`)
    Storage all_reduced;        ///< held to the end of backward
    Nanoseconds gather_end = 0;
    bool is_whole = false, ended_backward = false;
  };

  std::size_t depth() const { return static_cast<std::size_t>(options_.prefetch_depth); }
  std::int64_t padded_rows(const ParameterShape& shape) const;
  void add_parameter(Unit& unit, const ParameterShape& shape);
  void begin_root();
  void gathers_wait_for(Nanoseconds event);
  void issue_gather(std::size_t unit);
  void start_gather(std::size_t unit);
  void make_whole(Unit& unit);
  void wait_for_gather(Unit& unit, bool in_backward);
  void reshard_after_forward(Unit& unit);
  void reshard(Unit& unit);
  void prefetch_forward(std::size_t unit);
  void prefetch_backward(std::size_t unit);
  void before_backward(std::size_t unit);
  void after_backward(std::size_t unit);
  void keep_gradients(Unit& unit);
  void reduce(std::size_t unit);
  Storage copy_in(Unit& unit);
  void make_room_for_input();
  void start_reduction(std::size_t unit, const Storage& input, const Storage& reduced);

  Eager& eager_;
  WrapOptions options_;
  std::vector<Unit> units_;
  /// The input of a reduce-scatter, and when it will have been reduced.
  struct Reduction {
    Storage input;
    Nanoseconds end = 0;
  };

  Storage copied_out_;  ///< a forward gather's output, kept until the next one is waited for
  std::deque<Reduction> reductions_;
  Nanoseconds copied_out_at_ = 0;
};

}  // namespace foreshard::sim::torch
