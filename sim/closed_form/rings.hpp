#pragma once
#include "sim/closed_form/step_time.hpp"

namespace foreshard::sim::closed_form {

/// How long some collectives last, and for how much of that they move data, which is what slows compute beside them.
struct Traffic {
  double seconds = 0, moving_s = 0;
  Traffic operator+(const Traffic& other) const { return {seconds + other.seconds, moving_s + other.moving_s}; }
  Traffic operator*(double factor) const { return {factor * seconds, factor * moving_s}; }
};

/// Ring collectives over a step's groups.
class Rings {
 public:
  Rings(const Step& step, const GpuRates& gpu, const Efficiency& efficiency) : s_(step), gpu_(gpu), e_(efficiency) {}

  /// An all-gather or reduce-scatter of `bytes` in all over the shard group, of neighbours.
  Traffic sharded(double bytes) const;
  /// An all-reduce over the replicas, which are a shard group apart.
  Traffic replicated(double bytes) const;
  /// A block's gradients, through to their owners.
  Traffic reduction() const;
  /// A block's parameters, as they are computed with.
  Traffic gathering() const;

 private:
  Traffic ring(double bytes, int members, int on_node) const;

  const Step& s_;
  const GpuRates& gpu_;
  const Efficiency& e_;
};

}  // namespace foreshard::sim::closed_form
