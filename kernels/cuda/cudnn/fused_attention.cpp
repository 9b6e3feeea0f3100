#include "kernels/cuda/cudnn/fused_attention.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "kernels/cuda/cudnn/attention_plans.hpp"
#include "kernels/cuda/cudnn/library.hpp"
#include "kernels/qkv.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

struct DestroyHandle {
  void operator()(cudnnHandle_t handle) const { library()->destroy(handle); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, DestroyHandle>;

Handle make_handle() {
  cudnnHandle_t handle = nullptr;
  check(library()->create(&handle), "cudnnCreate");
  return Handle(handle);
}

std::byte* address(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

std::byte*& at(Pointers& pointers, Operand operand) { return pointers[static_cast<std::size_t>(operand)]; }

/// Where queries, keys and values begin, of operands apart or packed.
std::array<std::byte*, 3> parts_of(const Attention& o, const Const q, const Const k, const Const v) {
  std::array<std::byte*, 3> parts{};
  by_type<BFloat16, Float16>(q.dtype, [&]<class T>(T) {
    const auto all = qkv_of<T>(o, q, k, v);
    parts = {address(all.q), address(all.k), address(all.v)};
  });
  return parts;
}

class PlannedAttention final : public FusedAttention {
 public:
  PlannedAttention(const Attention& o, Handle handle, AttentionPlans plans)
      : o_(o), handle_(std::move(handle)), plans_(std::move(plans)) {}

  void forward(const Queue& queue, Const q, Const k, Const v, Mut y, Mut log_sum_exp) override {
    use(queue);
    plans_.forward.run(handle_.get(), inputs(q, k, v, y.data, log_sum_exp.data), 0, queue.workspace);
  }
  void backward(const Queue& queue, Const dy, Const q, Const k, Const v, Const y, Const log_sum_exp, Mut dq, Mut dk,
                Mut dv) override {
    use(queue);
    Pointers pointers = inputs(q, k, v, y.data, log_sum_exp.data);
    at(pointers, Operand::dy) = address(dy.data);
    at(pointers, Operand::row_sums) = queue.workspace;
    const auto [to_q, to_k, to_v] = parts_of(o_, as_const(dq), as_const(dk), as_const(dv));
    at(pointers, Operand::dq) = to_q;
    at(pointers, Operand::dk) = to_k;
    at(pointers, Operand::dv) = to_v;
    for (std::int64_t part = 0; part < plans_.backward_parts; ++part)
      plans_.backward.run(handle_.get(), pointers, part, queue.workspace + plans_.row_sum_bytes);
  }

 private:
  static Const as_const(const Mut& operand) { return {operand.data, operand.dtype}; }

  void use(const Queue& queue) { check(library()->set_stream(handle_.get(), queue.stream), "cudnnSetStream"); }
  Pointers inputs(const Const& q, const Const& k, const Const& v, const void* y, const void* log_sum_exp) const {
    Pointers pointers{};
    const auto [from_q, from_k, from_v] = parts_of(o_, q, k, v);
    at(pointers, Operand::q) = from_q;
    at(pointers, Operand::k) = from_k;
    at(pointers, Operand::v) = from_v;
    at(pointers, Operand::y) = address(y);
    at(pointers, Operand::log_sum_exp) = address(log_sum_exp);
    return pointers;
  }

  Attention o_;
  Handle handle_;
  AttentionPlans plans_;
};

std::unique_ptr<FusedAttention> planned(const Queue& queue, const Attention& o, DType type, Layout layout) {
  Handle handle = make_handle();
  auto plans = find_plans({handle.get()}, o, type, layout, queue.workspace_bytes);
  if (!plans) return nullptr;
  return std::make_unique<PlannedAttention>(o, std::move(handle), std::move(*plans));
}

}  // namespace

std::unique_ptr<FusedAttention> find_attention(const Queue& queue, const Attention& o, DType type, bool packed) {
  if (!library() || !has_graph(o, type)) return nullptr;
  try {
    return planned(queue, o, type, packed ? Layout::packed : Layout::apart);
  } catch (const LibraryError&) {  // how cuDNN says that it has no such operation
    return nullptr;
  }
}

std::size_t version() { return library() ? library()->version() : 0; }

}  // namespace foreshard::kernels::cuda::cudnn
