#include "kernels/cpu/matmul.hpp"

#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t grain = 16;

/// What a product is added to: C or zero, plus the bias.
template <class T, class Result>
void begin_rows(const Matmul& o, std::int64_t rows, const T* bias, Result* c) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < o.n; ++j) {
      c[i * o.n + j] = static_cast<Result>((o.accumulate ? static_cast<float>(c[i * o.n + j]) : 0.0F) +
                                           (bias ? static_cast<float>(bias[j]) : 0.0F));
    }
  }
}

/// The primitive is slower here than sgemm, and takes no rows of a larger A.
void transposed_rows(const Matmul& o, std::int64_t begin, std::int64_t end, const Factors<float, float>& f) {
  float* c = f.c + begin * o.n;
  if (f.bias) begin_rows(o, end - begin, f.bias, c);
  run_sgemm({end - begin, o.n, o.k, true, o.transpose_b, f.a + begin, o.m, f.b, o.transpose_b ? o.k : o.n,
             o.accumulate || f.bias ? 1.0F : 0.0F, c, o.n});
}

void float_rows(const Matmul& o, std::int64_t begin, std::int64_t end, const Factors<float, float>& f) {
  if (o.transpose_a) return transposed_rows(o, begin, end, f);
  run_product({end - begin, o.n, o.k, o.transpose_b, o.accumulate, f.bias != nullptr}, f.a + begin * o.k, f.b, f.bias,
              f.c + begin * o.n);
}

template <class T, class Result>
void run_rows(const Matmul& o, MatmulRoute route, std::int64_t begin, std::int64_t end, const Factors<T, Result>& f) {
  if constexpr (std::is_same_v<T, float>) {
    float_rows(o, begin, end, f);
  } else {
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (route == MatmulRoute::native) return native_rows(o, begin, end, f);
    }
    widened_rows(o, begin, end, f);
  }
}

template <class T, class Result>
void multiply(const Matmul& o, MatmulRoute route, const Factors<T, Result>& f) {
  if (o.m == 0 || o.n == 0) return;
  if (o.k == 0) return begin_rows(o, o.m, f.bias, f.c);
  share(o.m, grain, [=, &o](std::int64_t begin, std::int64_t end) { run_rows(o, route, begin, end, f); });
}

}  // namespace

void matmul(const Matmul& o, MatmulRoute route, Const a, Const b, Const bias, Mut c) {
  by_number(a.dtype, [&]<class T>(T) {
    by_result_type<T>(c.dtype, [&]<class Result>(Result) {
      multiply<T, Result>(o, route, {as<T>(a), as<T>(b), as<T>(bias), as<Result>(c)});
    });
  });
}

/// Bytes of one thread that computes all rows; sgemm asks the system for its own.
std::int64_t matmul_scratch_bytes(const Matmul& o, MatmulRoute route, DType operands, DType result) {
  if (o.m == 0 || o.n == 0 || o.k == 0) return 0;
  if (operands == DType::bf16 && route == MatmulRoute::native) return native_scratch_bytes(o, result);
  if (operands != DType::f32) return widened_scratch_bytes(o, result);
  if (o.transpose_a) return 0;
  return product_scratch_bytes({o.m, o.n, o.k, o.transpose_b, o.accumulate, false});
}

}  // namespace foreshard::kernels::cpu
