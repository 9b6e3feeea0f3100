// cuBLASLt works on columns: our C[m, n] = A·B, row by row, is its Cᵀ[n, m] = Bᵀ·Aᵀ, column by column.
#include "kernels/cuda/matmul.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/operand.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr std::uint32_t widest_alignment = 16;  ///< bytes; no kernel accesses more at a time
constexpr int candidate_count = 16;

std::uint32_t alignment_of(std::initializer_list<const void*> pointers) {
  std::uintptr_t bits = widest_alignment;
  for (const void* pointer : pointers) bits |= reinterpret_cast<std::uintptr_t>(pointer);
  return std::uint32_t{1} << std::countr_zero(bits);
}

cublasLtEpilogue_t epilogue_of(const MatmulTypes& types) {
  switch (types.fused) {
    case Fused::gelu:
      return types.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Fused::gelu_backward:
      return CUBLASLT_EPILOGUE_DGELU;
    case Fused::bias_grad:
      return CUBLASLT_EPILOGUE_BGRADB;
    default:
      return types.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

/// A product as cuBLASLt describes it. Where its second operand is a matrix, that lies as the result does.
struct Described {
  Described(const Matmul& o, const MatmulTypes& types)
      : left(o.transpose_b ? make_layout(types.operands, o.k, o.n) : make_layout(types.operands, o.n, o.k)),
        right(o.transpose_a ? make_layout(types.operands, o.m, o.k) : make_layout(types.operands, o.k, o.m)),
        result(make_layout(types.result, o.n, o.m)) {
    set(product, CUBLASLT_MATMUL_DESC_TRANSA, o.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(product, CUBLASLT_MATMUL_DESC_TRANSB, o.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(types));
    if (types.bias || types.fused == Fused::bias_grad)
      set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, blas_type(types.bias ? types.operands : types.result));
    if (types.fused == Fused::gelu || types.fused == Fused::gelu_backward)
      set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, o.n);
  }
  void use(const void* bias, const void* auxiliary) {
    if (bias) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (auxiliary) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary);
  }
  ProductDescription product = make_description();
  Layout left, right, result;
};

/// Sums of parts are made in f32, in an order that does not vary.
Preference preference_of(std::int64_t workspace_bytes, std::uint32_t alignment) {
  Preference preference = make_preference();
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes));
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, attribute, alignment);
  return preference;
}

std::string text_of(const Matmul& o, const MatmulTypes& types) {
  return std::to_string(o.m) + " x " + std::to_string(o.n) + " x " + std::to_string(o.k) + " of " +
         std::string(name_of(types.operands)) + " into " + std::string(name_of(types.result));
}

Algorithm algorithm_in(const cublasLtMatmulHeuristicResult_t& found) {
  return {std::bit_cast<std::array<std::uint64_t, 8>>(found.algo), static_cast<std::int64_t>(found.workspaceSize)};
}

void expect_types(const Const& a, const Const& b, const Const& bias, const Mut& c) {
  by_type<float, BFloat16, Float16>(a.dtype, [&]<class T>(T) {
    as<T>(b);
    as<T>(bias);
    by_result_type<T>(c.dtype, [](auto) {});
  });
}

}  // namespace

std::vector<Algorithm> Products::candidates(const Key& key, int most) {
  const auto& [o, types, alignment] = key;
  Described d(o, types);
  const auto* somewhere = reinterpret_cast<const void*>(std::uintptr_t{alignment});  // only its alignment is looked at
  d.use(types.bias || types.fused == Fused::bias_grad ? somewhere : nullptr,
        types.fused == Fused::gelu || types.fused == Fused::gelu_backward ? somewhere : nullptr);
  const Preference preference = preference_of(queue_.workspace_bytes, alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle_.get(), d.product.get(), d.left.get(), d.right.get(), d.result.get(),
                                       d.result.get(), preference.get(), most, found.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic (" + text_of(o, types) + ")");
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  std::vector<Algorithm> algorithms(found.size());
  std::ranges::transform(found, algorithms.begin(), algorithm_in);
  return algorithms;
}

std::vector<Algorithm> Products::candidates(const Matmul& o, const MatmulTypes& types) {
  return candidates({o, types, widest_alignment}, candidate_count);
}

void Products::set_algorithm(const Matmul& o, const MatmulTypes& types, const Algorithm& algorithm) {
  FORESHARD_EXPECT(algorithm.workspace_bytes <= queue_.workspace_bytes, "the algorithm's workspace is too large");
  algorithms_[{o, types, widest_alignment}] = algorithm;
}

const Algorithm& Products::algorithm_of(const Key& key) {
  const auto known = algorithms_.find(key);
  if (known != algorithms_.end()) return known->second;
  const std::vector<Algorithm> found = candidates(key, 1);
  if (found.empty())
    throw LibraryError("cuBLASLt has no algorithm for " + text_of(std::get<0>(key), std::get<1>(key)) +
                       " with operands aligned to " + std::to_string(std::get<2>(key)) + " bytes");
  return algorithms_.emplace(key, found.front()).first->second;
}

void Products::run(const Matmul& product, Const a, Const b, Const bias, Mut c) {
  Matmul o = product;
  if (o.m == 0 || o.n == 0) return;
  expect_types(a, b, bias, c);
  const bool apart = o.k == 0 || (bias.data && c.dtype != bias.dtype);  // not as an epilogue
  if (apart) begin_product(queue_, o, bias, c);
  if (o.k == 0) return;
  if (apart) {
    bias = {};
    o.accumulate = true;
  }
  multiply(o, {a.dtype, c.dtype, bias.data != nullptr}, a, b, bias.data, c, nullptr);
}

void Products::run_fused(const Matmul& o, Fused fused, const Const a, const Const b, const Const bias, const Mut c,
                         const Mut other) {
  expect_types(a, b, bias, c);
  FORESHARD_EXPECT(!o.accumulate && other.dtype == c.dtype && (!bias.data || bias.dtype == c.dtype),
                   "a fused product adds to nothing and is of one type");
  const bool sums = fused == Fused::bias_grad;
  multiply(o, {a.dtype, c.dtype, bias.data != nullptr, fused}, a, b, sums ? other.data : bias.data, c,
           sums ? nullptr : other.data);
}

void Products::multiply(const Matmul& o, const MatmulTypes& types, const Const a, const Const b, const void* bias,
                        const Mut c, const void* auxiliary) {
  const Algorithm& algorithm = algorithm_of({o, types, alignment_of({a.data, b.data, bias, c.data, auxiliary})});
  Described d(o, types);
  d.use(bias, auxiliary);
  const auto choice = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm.choice);
  const float alpha = 1, beta = o.accumulate ? 1.0F : 0.0F;
  check(cublasLtMatmul(handle_.get(), d.product.get(), &alpha, b.data, d.left.get(), a.data, d.right.get(), &beta,
                       c.data, d.result.get(), c.data, d.result.get(), &choice, queue_.workspace,
                       static_cast<std::size_t>(queue_.workspace_bytes), queue_.stream),
        "cublasLtMatmul (" + text_of(o, types) + ")");
}

}  // namespace foreshard::kernels::cuda
