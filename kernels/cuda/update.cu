#include "kernels/cuda/update.hpp"

#include "kernels/cuda/kernels.hpp"

namespace foreshard::kernels::cuda {
namespace {

/// `work` is an Update or a list of parts.
template <class Work>
void run(const Queue& queue, Optimizer optimizer, const Work& work, const Const& grad, const Mut& parameter,
         const Mut& first, const Mut& second) {
  switch (optimizer) {
    case Optimizer::adamw:
      return adamw(queue, work, grad, parameter, first, second);
    case Optimizer::adam:
      return adam(queue, work, grad, parameter, first, second);
    case Optimizer::sgd:
      return sgd(queue, work, grad, parameter);
    case Optimizer::sgd_momentum:
      return momentum(queue, work, grad, parameter, first);
    case Optimizer::lion:
      return lion(queue, work, grad, parameter, first);
  }
}

}  // namespace

void update(const Queue& queue, Optimizer optimizer, const Update& o, Const grad, Mut parameter, Mut first,
            Mut second) {
  run(queue, optimizer, o, grad, parameter, first, second);
}

void update(const Queue& queue, Optimizer optimizer, const Step* step, const Rule* rules, const Part* parts,
            std::int64_t part_count, std::int64_t count, float norm_power, const std::int64_t* norm_words,
            std::int64_t word_count, const double* loss, Const grad, Mut parameter, Mut first, Mut second) {
  run(queue, optimizer, PartList{step, rules, parts, part_count, count, {norm_power, norm_words, word_count, loss}},
      grad, parameter, first, second);
}

}  // namespace foreshard::kernels::cuda
