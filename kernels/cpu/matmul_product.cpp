#include <fmt/format.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "base/error.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, bool transposed, DType type) {
  using Tag = dnnl::memory::format_tag;
  using Type = dnnl::memory::data_type;
  return {{rows, cols}, type == DType::bf16 ? Type::bf16 : Type::f32, transposed ? Tag::ba : Tag::ab};
}

/// While it lives, oneDNN uses no team: what it does with one (it may cut k) changes bits.
class WithoutTeam {
 public:
  WithoutTeam() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~WithoutTeam() { omp_set_num_threads(before_); }
  WithoutTeam(const WithoutTeam&) = delete;
  WithoutTeam& operator=(const WithoutTeam&) = delete;

 private:
  int before_;
};

/// oneDNN 2 describes an operation before its primitive, oneDNN 3 at once.
template <class Matmul>
typename Matmul::primitive_desc description(const dnnl::primitive_attr& attributes, const auto&... operands) {
  if constexpr (requires { typename Matmul::desc; })
    return {typename Matmul::desc(operands...), attributes, engine()};
  else
    return {engine(), operands..., attributes};
}

/// One product, ready to run. It belongs to the thread that made it.
class Prepared {
 public:
  explicit Prepared(const Product& product) : Prepared(describe(product), product.bias) {}

  void run(const void* a, const void* b, const void* bias, void* c) {
    thread_local dnnl::stream stream(engine());
    bind(DNNL_ARG_SRC, a);
    bind(DNNL_ARG_WEIGHTS, b);
    if (bias) bind(DNNL_ARG_BIAS, bias);
    bind(DNNL_ARG_DST, c);
    bind(DNNL_ARG_SCRATCHPAD, thread_scratch().of<char>(scratch_bytes_));
    primitive_.execute(stream, arguments_);
    stream.wait();
  }

  std::size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  Prepared(const dnnl::matmul::primitive_desc& d, bool bias)
      : primitive_(d), scratch_bytes_(d.scratchpad_desc().get_size()) {
    add(DNNL_ARG_SRC, d.src_desc());
    add(DNNL_ARG_WEIGHTS, d.weights_desc());
    if (bias) add(DNNL_ARG_BIAS, d.bias_desc());
    add(DNNL_ARG_DST, d.dst_desc());
    add(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
  }

  static dnnl::matmul::primitive_desc describe(const Product& p) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (p.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    const auto a = matrix(p.m, p.k, false, p.operands), b = matrix(p.k, p.n, p.transpose_b, p.operands),
               c = matrix(p.m, p.n, false, p.result), bias = matrix(1, p.n, false, p.operands);
    return p.bias ? description<dnnl::matmul>(attributes, a, b, bias, c)
                  : description<dnnl::matmul>(attributes, a, b, c);
  }

  void add(int argument, const dnnl::memory::desc& d) {
    arguments_.emplace(argument, dnnl::memory(d, engine(), nullptr));
  }
  void bind(int argument, const void* data) { arguments_.at(argument).set_data_handle(const_cast<void*>(data)); }

  dnnl::matmul primitive_;
  std::size_t scratch_bytes_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

Prepared& prepared(const Product& product) {
  thread_local std::map<Product, Prepared> cache;
  const auto found = cache.find(product);
  return found != cache.end() ? found->second : cache.emplace(product, Prepared(product)).first->second;
}

LibraryError failure(const dnnl::error& e, std::int64_t m, std::int64_t n, std::int64_t k, DType operands) {
  return LibraryError(fmt::format("oneDNN matmul of {} with m = {}, n = {}, k = {} failed: {} (status {})",
                                  name_of(operands), m, n, k, e.what(), static_cast<int>(e.status)));
}

}  // namespace

void run_product(const Product& p, const void* a, const void* b, const void* bias, void* c) try {
  const WithoutTeam alone;
  prepared(p).run(a, b, bias, c);
} catch (const dnnl::error& e) {
  throw failure(e, p.m, p.n, p.k, p.operands);
}

std::int64_t product_scratch_bytes(const Product& p) try {
  return static_cast<std::int64_t>(prepared(p).scratch_bytes());
} catch (const dnnl::error& e) {
  throw failure(e, p.m, p.n, p.k, p.operands);
}

void run_sgemm(const Sgemm& s) try {
  const WithoutTeam alone;
  const auto status = dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1, s.a, s.lda,
                                 s.b, s.ldb, s.beta, s.c, s.ldc);
  if (status != dnnl_success) throw dnnl::error(status, "dnnl_sgemm");
} catch (const dnnl::error& e) {
  throw failure(e, s.m, s.n, s.k, DType::f32);
}

}  // namespace foreshard::kernels::cpu
