#include <cmath>
#include <vector>

#include "kernels/faster_route.hpp"
#include "kernels/operand.hpp"

namespace foreshard::kernels {
namespace {

class Trial {
 public:
  Trial(Backend& backend, const Matmul& shape, DType result)
      : backend_(backend),
        shape_(shape),
        result_(result),
        a_(static_cast<std::size_t>(shape.m * shape.k), BFloat16(1.0F)),
        b_(static_cast<std::size_t>(shape.k * shape.n), BFloat16(0x1p-10F)),
        c_(static_cast<std::size_t>(shape.m * shape.n)) {}

  /// Whether a NaN in the first row of A stays in the first row of C.
  bool native_keeps_rows_apart() {
    poison_first_row(NAN);
    run(MatmulRoute::native);
    poison_first_row(1.0F);
    for (std::int64_t i = shape_.n; i < shape_.m * shape_.n; ++i) {
      if (std::isnan(result_ == DType::f32 ? c_[i] : static_cast<float>(reinterpret_cast<BFloat16*>(c_.data())[i])))
        return false;
    }
    return true;
  }

  MatmulRoute faster() {
    return faster_route([this](MatmulRoute route) { run(route); });
  }

 private:
  void run(MatmulRoute route) {
    backend_.set_matmul_routes({.otherwise = route});
    Matmul product = shape_;
    product.accumulate = false;
    backend_.matmul(product, {a_.data(), DType::bf16}, {b_.data(), DType::bf16}, {}, {c_.data(), result_});
  }

  void poison_first_row(float value) {
    const std::int64_t stride = shape_.transpose_a ? shape_.m : 1;
    for (std::int64_t l = 0; l < shape_.k; ++l) a_[l * stride] = BFloat16(value);
  }

  Backend& backend_;
  Matmul shape_;
  DType result_;
  std::vector<BFloat16> a_, b_;
  std::vector<float> c_;
};

MatmulRoute tried(Backend& backend, const Matmul& shape, DType result) try {
  Trial trial(backend, shape, result);
  return trial.native_keeps_rows_apart() ? trial.faster() : MatmulRoute::widened;
} catch (const LibraryError&) {
  return MatmulRoute::widened;
}

}  // namespace

MatmulRoute choose_matmul_route(Backend& backend, const Matmul& shape, DType result) {
  const MatmulRoute route = tried(backend, shape, result);
  backend.set_matmul_routes({.otherwise = route});
  return route;
}

}  // namespace foreshard::kernels
