#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "base/error.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// A product whose A is not transposed.
struct Shape {
  std::int64_t m, n, k;
  bool transpose_b, accumulate, bias;
  auto operator<=>(const Shape&) const = default;
};

dnnl::engine& engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t cols, bool transposed) {
  using Tag = dnnl::memory::format_tag;
  return {{rows, cols}, dnnl::memory::data_type::f32, transposed ? Tag::ba : Tag::ab};
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

/// One shape, ready to run. It belongs to the thread that made it.
class Prepared {
 public:
  explicit Prepared(const Shape& shape) : Prepared(describe(shape), shape.bias) {}

  void run(const float* a, const float* b, const float* bias, float* c) {
    thread_local dnnl::stream stream(engine());
    bind(DNNL_ARG_SRC, a);
    bind(DNNL_ARG_WEIGHTS, b);
    if (bias) bind(DNNL_ARG_BIAS, bias);
    bind(DNNL_ARG_DST, c);
    bind(DNNL_ARG_SCRATCHPAD, thread_scratch().of<char>(scratch_bytes_));
    primitive_.execute(stream, arguments_);
    stream.wait();
  }

 private:
  Prepared(const dnnl::matmul::primitive_desc& d, bool bias)
      : primitive_(d), scratch_bytes_(d.scratchpad_desc().get_size()) {
    add(DNNL_ARG_SRC, d.src_desc());
    add(DNNL_ARG_WEIGHTS, d.weights_desc());
    if (bias) add(DNNL_ARG_BIAS, d.bias_desc());
    add(DNNL_ARG_DST, d.dst_desc());
    add(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
  }

  static dnnl::matmul::primitive_desc describe(const Shape& s) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    const auto a = matrix(s.m, s.k, false), b = matrix(s.k, s.n, s.transpose_b), c = matrix(s.m, s.n, false);
    const auto bias = matrix(1, s.n, false);
    return {s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c), attributes, engine()};
  }

  void add(int argument, const dnnl::memory::desc& d) {
    arguments_.emplace(argument, dnnl::memory(d, engine(), nullptr));
  }
  void bind(int argument, const void* data) { arguments_.at(argument).set_data_handle(const_cast<void*>(data)); }

  dnnl::matmul primitive_;
  std::size_t scratch_bytes_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

Prepared& prepared(const Shape& shape) {
  thread_local std::map<Shape, Prepared> cache;
  const auto found = cache.find(shape);
  return found != cache.end() ? found->second : cache.emplace(shape, Prepared(shape)).first->second;
}

/// What a product is added to: C or zero, plus the bias.
void begin_rows(const Matmul& o, std::int64_t rows, const float* bias, float* c) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < o.n; ++j) {
      c[i * o.n + j] = (o.accumulate ? c[i * o.n + j] : 0.0F) + (bias ? bias[j] : 0.0F);
    }
  }
}

/// The primitive is slower here than sgemm, and takes no rows of a larger A.
void transposed_rows(const Matmul& o, std::int64_t rows, const float* a, const float* b, const float* bias, float* c) {
  const bool add = o.accumulate || bias;
  if (bias) begin_rows(o, rows, bias, c);
  const auto status = dnnl_sgemm('T', o.transpose_b ? 'T' : 'N', rows, o.n, o.k, 1, a, o.m, b,
                                 o.transpose_b ? o.k : o.n, add ? 1.0F : 0.0F, c, o.n);
  if (status != dnnl_success) throw dnnl::error(status, "dnnl_sgemm");
}

void run_rows(const Matmul& o, std::int64_t begin, std::int64_t end, const float* a, const float* b, const float* bias,
              float* c) try {
  const WithoutTeam alone;
  if (o.transpose_a) return transposed_rows(o, end - begin, a + begin, b, bias, c + begin * o.n);
  prepared({end - begin, o.n, o.k, o.transpose_b, o.accumulate, bias != nullptr})
      .run(a + begin * o.k, b, bias, c + begin * o.n);
} catch (const dnnl::error& e) {
  throw LibraryError(fmt::format("oneDNN matmul of m = {}, n = {}, k = {} failed: {} (status {})", o.m, o.n, o.k,
                                 e.what(), static_cast<int>(e.status)));
}

}  // namespace

void matmul(const Matmul& o, const float* a, const float* b, const float* bias, float* c) {
  if (o.m == 0 || o.n == 0) return;
  if (o.k == 0) return begin_rows(o, o.m, bias, c);
  constexpr std::int64_t grain = 16;
  share(o.m, grain, [=, &o](std::int64_t begin, std::int64_t end) { run_rows(o, begin, end, a, b, bias, c); });
}

}  // namespace foreshard::kernels::cpu
