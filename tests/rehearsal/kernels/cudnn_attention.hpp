#pragma once
#include "half_arrays.hpp"
#include "rehearsal/kernels/device_fixture.hpp"

/// Attention of bf16 that runs by cuDNN: on a device by its own kernels, in the rehearsal by what they are asked for.
namespace foreshard::kernels::cuda {

/// The kernels with a workspace in which cuDNN has room for a few sequences.
struct ByCudnn : OnStream {
  ByCudnn() : OnStream(32 << 20) {}
};

/// Operands in device memory, apart or packed into q; then k and v, and their gradients, are not used.
struct Case {
  Case(const Attention& shape, bool is_packed) : o(shape), packed(is_packed) {}

  void forward(Kernels& kernels) const {
    kernels.attention(o, q, unless_packed<Const>(k), unless_packed<Const>(v), y, lse);
  }
  void backward(Kernels& kernels) const {
    kernels.attention_backward(o, dy, q, unless_packed<Const>(k), unless_packed<Const>(v), y, lse, dq,
                               unless_packed<Mut>(dk), unless_packed<Mut>(dv));
  }
  void both(Kernels& kernels) const { forward(kernels), backward(kernels); }
  template <class Operand>
  Operand unless_packed(const DeviceArray<BFloat16>& x) const {
    return packed ? Operand{} : Operand(x);
  }

  Attention o;
  bool packed;
  std::int64_t inner = o.batch * o.seq * o.heads * o.width, key_count = o.batch * o.seq * o.keys() * o.width;
  Array<BFloat16> host_q = Array<BFloat16>::random(packed ? 3 * inner : inner, 1),
                  host_k = Array<BFloat16>::random(key_count, 2), host_v = Array<BFloat16>::random(key_count, 3),
                  host_dy = Array<BFloat16>::random(inner, 4);
  DeviceArray<BFloat16> q{host_q}, k{host_k}, v{host_v}, dy{host_dy}, y{Array<BFloat16>(inner)},
      dq{Array<BFloat16>(host_q.size())}, dk{Array<BFloat16>(key_count)}, dv{Array<BFloat16>(key_count)};
  DeviceArray<float> lse{Floats(o.batch * o.heads * o.seq)};
};

inline std::vector<std::vector<std::uint16_t>> bits_of(const Case& c) {
  std::vector<std::vector<std::uint16_t>> all;
  for (const DeviceArray<BFloat16>* array : {&c.y, &c.dq, &c.dk, &c.dv}) {
    all.emplace_back();
    for (const BFloat16& value : array->values()) all.back().push_back(value.bits);
  }
  return all;
}

/// Skips the test where this shape does not run by cuDNN.
#define EXPECT_PLAN(o)                                        \
  if (!kernels->set_attention_by_cudnn(o, DType::bf16, true)) \
  GTEST_SKIP() << "cuDNN has no plan: no libcudnn.so.9 (see LD_LIBRARY_PATH), or one too old"

}  // namespace foreshard::kernels::cuda
