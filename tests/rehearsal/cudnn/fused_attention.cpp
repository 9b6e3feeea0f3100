// cuDNN's attention on rehearsed devices, in place of kernels/cuda/cudnn/fused_attention.cpp: the same graphs, computed
// by the interpreter of their tests, on the stream.
#include "kernels/cuda/cudnn/fused_attention.hpp"

#include <atomic>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/cudnn/attention_graph.hpp"
#include "kernels/qkv.hpp"
#include "rehearsal/cudnn/fault.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/stream.hpp"
#include "unit/cudnn/interpreter.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

/// What an address of the device is in the host's memory.
template <class T>
T* real(T* address) {
  return static_cast<T*>(rehearsal::Memory::real(const_cast<std::remove_const_t<T>*>(address)));
}

template <class T>
Qkv<T> real(const Qkv<T>& all) {
  return {real(all.q), real(all.k), real(all.v), all.q_stride, all.kv_stride};
}

template <class T>
void read(Interpreter& graph, const Qkv<const T>& in) {
  graph.read(Operand::q, in.q);
  graph.read(Operand::k, in.k);
  graph.read(Operand::v, in.v);
}

std::atomic<float> wrong_by{1};

template <class T>
void spoil(std::int64_t count, T* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(wrong_by * static_cast<float>(y[i]));
}

template <class T>
void compute_forward(const Graph& description, const Qkv<const T>& in, T* y, float* log_sum_exp) {
  Interpreter graph(description);
  read(graph, in);
  graph.run();
  graph.write(Operand::y, y);
  graph.write(Operand::log_sum_exp, log_sum_exp);
}

template <class T>
void compute_backward(const Graph& description, const T* dy, const Qkv<const T>& in, const T* y,
                      const float* log_sum_exp, const Qkv<T>& grads) {
  Interpreter graph(description);
  read(graph, in);
  graph.read(Operand::dy, dy);
  graph.read(Operand::y, y);
  graph.read(Operand::log_sum_exp, log_sum_exp);
  graph.run();
  graph.write(Operand::dq, grads.q);
  graph.write(Operand::dk, grads.k);
  graph.write(Operand::dv, grads.v);
}

class RehearsedAttention final : public FusedAttention {
 public:
  RehearsedAttention(const Attention& o, DType type, Layout layout)
      : o_(o), forward_(forward_graph(o, type, layout)), backward_(backward_graph(o, type, layout)) {}

  void forward(const Queue& queue, Const q, Const k, Const v, Mut y, Mut log_sum_exp) override {
    by_type<BFloat16, Float16>(y.dtype, [&]<class T>(T) {
      put(queue, [graph = forward_, in = real(qkv_of<T>(o_, q, k, v)), y = real(as<T>(y)),
                  lse = real(as<float>(log_sum_exp)), count = o_.batch * o_.seq * o_.heads * o_.width] {
        compute_forward<T>(graph, in, y, lse);
        spoil(count, y);
      });
    });
  }
  void backward(const Queue& queue, Const dy, Const q, Const k, Const v, Const y, Const log_sum_exp, Mut dq, Mut dk,
                Mut dv) override {
    by_type<BFloat16, Float16>(y.dtype, [&]<class T>(T) {
      put(queue, [graph = backward_, dy = real(as<T>(dy)), in = real(qkv_of<T>(o_, q, k, v)), y = real(as<T>(y)),
                  lse = real(as<float>(log_sum_exp)),
                  grads = real(qkv_of<T>(o_, dq, dk, dv))] { compute_backward<T>(graph, dy, in, y, lse, grads); });
    });
  }

 private:
  static void put(const Queue& queue, std::function<void()> work) {
    check(rehearsal::queue(queue.stream, std::move(work)), "cudnnBackendExecute");
  }

  Attention o_;
  Graph forward_, backward_;
};

/// What a deterministic plan of one sequence keeps.
std::int64_t score_bytes(const Attention& o) { return 2 * o.heads * o.seq * o.seq; }

}  // namespace

std::unique_ptr<FusedAttention> find_attention(const Queue& queue, const Attention& o, DType type, bool packed) {
  if (!has_graph(o, type) || score_bytes(o) > queue.workspace_bytes) return nullptr;
  return std::make_unique<RehearsedAttention>(o, type, packed ? Layout::packed : Layout::apart);
}

std::size_t version() { return 91900; }

}  // namespace foreshard::kernels::cuda::cudnn

void rehearsal::scale_attention(float factor) { foreshard::kernels::cuda::cudnn::wrong_by = factor; }
