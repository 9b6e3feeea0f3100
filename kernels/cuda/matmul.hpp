#pragma once
#include <map>
#include <tuple>

#include "kernels/cuda/backend.hpp"
#include "kernels/cuda/blas.hpp"
#include "kernels/cuda/queue.hpp"

namespace foreshard::kernels::cuda {

/// Products by cuBLASLt, and the algorithm that each takes.
class Products {
 public:
  explicit Products(const Queue& queue) : queue_(queue) {}

  void run(const Matmul&, Const a, Const b, Const bias, Mut c);
  void run_fused(const Matmul&, Fused, Const a, Const b, Const bias, Mut c, Mut other);
  std::vector<Algorithm> candidates(const Matmul&, const MatmulTypes&);
  void set_algorithm(const Matmul&, const MatmulTypes&, const Algorithm&);

 private:
  /// A product whose operands are all aligned to `alignment` bytes.
  using Key = std::tuple<Matmul, MatmulTypes, std::uint32_t>;

  std::vector<Algorithm> candidates(const Key&, int most);
  const Algorithm& algorithm_of(const Key&);
  void multiply(const Matmul&, const MatmulTypes&, Const a, Const b, const void* bias, Mut c, const void* auxiliary);

  Queue queue_;
  BlasHandle handle_ = make_handle();
  std::map<Key, Algorithm> algorithms_;
};

/// c[m, n] = (accumulate ? c : 0) + bias[n], of any of the types that a product has; without bias just what precedes.
void begin_product(const Queue&, const Matmul&, Const bias, Mut c);

}  // namespace foreshard::kernels::cuda
