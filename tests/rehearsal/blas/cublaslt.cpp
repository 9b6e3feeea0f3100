#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "rehearsal/blas/product.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

struct cublasLtContext {
  int device;
};

namespace rehearsal {
namespace {

/// What an algorithm's bytes say: for which product it was found.
struct Algorithm {
  std::uint64_t mark, splits, alignment, m, n, k, types, epilogue;
  static constexpr std::uint64_t valid = 0x4C54414C474F5249;
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

std::uint64_t types_of(const Product& o) { return static_cast<std::uint64_t>(o.a.type) << 8 | o.d.type; }

Algorithm algorithm_for(const Product& o, std::uint32_t alignment) {
  return {Algorithm::valid, o.splits, alignment, o.m(), o.n(), o.k(), types_of(o), o.description.epilogue};
}

bool is_for(const Algorithm& algorithm, const Product& o) {
  return algorithm.mark == Algorithm::valid && algorithm.m == o.m() && algorithm.n == o.n() && algorithm.k == o.k() &&
         algorithm.types == types_of(o) && algorithm.epilogue == o.description.epilogue;
}

/// Reports what is wrong in words, since the library only says that something is.
cublasStatus_t invalid(const std::string& what) {
  report("cublasLtMatmul: " + what);
  return CUBLAS_STATUS_INVALID_VALUE;
}

struct Operand {
  const char* name;
  const void* at;
  std::size_t bytes;
};

std::vector<Operand> operands_of(const Product& o, const Pointers& at) {
  std::vector<Operand> operands = {
      {"a", at.a, bytes_of(o.a)}, {"b", at.b, bytes_of(o.b)}, {"c", at.c, bytes_of(o.c)}, {"d", at.d, bytes_of(o.d)}};
  if (o.description.adds_bias() || o.description.sums_b())
    operands.push_back({"bias", o.description.bias, o.bias_size() * size_of(o.d.type)});
  if (o.description.has_auxiliary())
    operands.push_back({"auxiliary", o.description.auxiliary, bytes_of(o.auxiliary())});
  if (o.workspace_bytes() != 0) operands.push_back({"workspace", at.workspace, o.workspace_bytes()});
  return operands;
}

/// The library does not look where pointers lead; the device does.
std::string address_problem(const Product& o, const Pointers& at) {
  for (const Operand& operand : operands_of(o, at))
    if (const std::string problem = Memory::instance().problem(operand.at, operand.bytes, current_device());
        !problem.empty())
      return fmt::format("cublasLtMatmul: {}: {}", operand.name, problem);
  return {};
}

std::string misaligned(const Product& o, const Pointers& at, std::uint64_t alignment) {
  for (const Operand& operand : operands_of(o, at))
    if (reinterpret_cast<std::uintptr_t>(operand.at) % alignment != 0 && operand.name != std::string("bias"))
      return fmt::format("{} at {} is not aligned to {} bytes, as its algorithm was told", operand.name, operand.at,
                         alignment);
  return {};
}

void carry_out(Product o, float alpha, float beta, Pointers at, const std::string& problem) {
  if (!problem.empty()) {
    report(problem);
    return fail_device(current_device(), cudaErrorIllegalAddress);
  }
  o.description.bias = Memory::real(o.description.bias);
  o.description.auxiliary = Memory::real(o.description.auxiliary);
  multiply(
      o, alpha, beta,
      {Memory::real(at.a), Memory::real(at.b), Memory::real(at.c), Memory::real(at.d), Memory::real(at.workspace)});
}

cublasStatus_t queue_product(const Product& o, float alpha, float beta, const Pointers& at, cudaStream_t stream) {
  const std::string problem = address_problem(o, at);
  const cudaError_t error = queue(stream, [=] { carry_out(o, alpha, beta, at, problem); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <class Body>
cublasStatus_t blas_call(const char* name, Body body) {
  if (const int error = injected(name); error != 0) return static_cast<cublasStatus_t>(error);
  return error_of(current_device()) == cudaSuccess ? body() : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
std::size_t cublasLtGetVersion() { return 130100; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return blas_call("cublasLtCreate", [&] {
    if (devices() == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasLtContext{current_device()};
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
  return blas_call("cublasLtMatmulAlgoGetHeuristic", [&] {
    *count = 0;
    Product o = {*description, *a, *b, *c, *d};
    if (const cublasStatus_t status = o.status(); status != CUBLAS_STATUS_SUCCESS) return status;
    const std::uint32_t alignment = std::min(16U, *std::ranges::min_element(preference->alignment));
    if (alignment < size_of(a->type)) return CUBLAS_STATUS_NOT_SUPPORTED;
    const bool may_split = (preference->reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
    for (o.splits = 1; o.splits <= 4 && *count < most && o.splits <= o.k(); o.splits *= 2) {
      if (o.workspace_bytes() > preference->workspace_bytes || (o.splits > 1 && !may_split)) break;
      found[*count] = {std::bit_cast<cublasLtMatmulAlgo_t>(algorithm_for(o, alignment)),
                       o.workspace_bytes(),
                       CUBLAS_STATUS_SUCCESS,
                       1,
                       {}};
      ++*count;
    }
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  return blas_call("cublasLtMatmul", [&] {
    Product o = {*description, *a_layout, *b_layout, *c_layout, *d_layout};
    if (handle->device != current_device()) return invalid("the handle was made on another device");
    if (const cublasStatus_t status = o.status(); status != CUBLAS_STATUS_SUCCESS) return status;
    if (algorithm == nullptr) return invalid("only with an algorithm is it rehearsed");
    const auto chosen = std::bit_cast<Algorithm>(*algorithm);
    if (!is_for(chosen, o)) return invalid("the algorithm was found for another product");
    o.splits = chosen.splits;
    if (o.workspace_bytes() > workspace_bytes)
      return invalid(
          fmt::format("the algorithm needs a workspace of {} bytes and has {}", o.workspace_bytes(), workspace_bytes));
    if ((o.description.adds_bias() || o.description.sums_b()) && o.description.bias == nullptr)
      return invalid("the epilogue adds or makes a bias, but there is none");
    if (o.description.has_auxiliary() && o.description.auxiliary == nullptr)
      return invalid("the epilogue has an auxiliary matrix, but there is none");
    const Pointers at = {a, b, c, d, workspace};
    if (const std::string problem = misaligned(o, at, chosen.alignment); !problem.empty()) return invalid(problem);
    return queue_product(o, *static_cast<const float*>(alpha), *static_cast<const float*>(beta), at, stream);
  });
}
}
