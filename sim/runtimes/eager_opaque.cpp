// An operator by its profile.
#include <algorithm>

#include "sim/runtimes/eager.hpp"

namespace foreshard::sim::torch {

using model::OpKind;

/// The result has the weight's type; what is kept besides the input is one storage.
Tensor Eager::opaque(const Tensor& x, const Tensor& weight, const OpaqueWork& work) {
  const Saved kept_x = save(x.storage), kept_weight = save(weight.storage);
  const Saved kept = save(empty_bytes(std::max<std::int64_t>(0, work.kept_bytes - x.storage.bytes())));
  auto dx = maker(x), d_weight = maker(weight);
  gpu_.computes(work.forward_flops, work.part_of_peak, weight.type, OpKind::opaque);
  if (work.waits) gpu_.block(gpu_.time().end_of(gpu_.current()));
  return made(empty(work.results, weight.type), work.results, weight.type, {x.edge, weight.edge},
              [=, this, type = weight.type, passes_on = x.edge.wants_gradient()](const Gradients&) -> Gradients {
                const Storage operands[] = {kept_x.get(), kept_weight.get(), kept.get()};
                gpu_.computes(work.backward_flops, work.part_of_peak, type, OpKind::opaque_backward);
                return {passes_on ? dx() : Storage{}, d_weight()};
              });
}

}  // namespace foreshard::sim::torch
