#include <nlohmann/json.hpp>

#include "kernel_times.hpp"

namespace foreshard::gpu_bench {
namespace {

using kernels::Attention;

// GPT-2, GPT-2 XL, and heads of 128 over longer sequences; peer.py times the same.
constexpr Attention shapes[] = {{.batch = 32, .seq = 1024, .heads = 12, .width = 64},
                                {.batch = 16, .seq = 1024, .heads = 25, .width = 64},
                                {.batch = 4, .seq = 4096, .heads = 32, .width = 128}};

double flops(const Attention& o, int products) {
  const auto pairs = static_cast<double>(o.seq * (o.seq + 1) / 2);
  return products * 2 * pairs * static_cast<double>(o.batch * o.heads * o.width);
}

nlohmann::json row(const char* name, const Attention& o, int products, const Timing& t) {
  return {{"name", name},           {"batch", o.batch}, {"seq", o.seq},
          {"heads", o.heads},       {"width", o.width}, {"flops", flops(o, products)},
          {"median_s", t.median_s}, {"p10_s", t.p10_s}, {"p90_s", t.p90_s}};
}

/// Both directions, as the kernels now do this shape.
void time_both(Device& device, const Attention& o, const char* forward, const char* backward, nlohmann::json& results) {
  const std::int64_t n = o.batch * o.seq * o.heads * o.width;
  const Numbers qkv(3 * n, DType::bf16, 4), dy(n, DType::bf16);
  Numbers y(n, DType::bf16), dqkv(3 * n, DType::bf16), lse(o.batch * o.heads * o.seq, DType::f32);
  results.push_back(row(forward, o, 2, device.time([&] { device.kernels().attention(o, qkv, y, lse); })));
  results.push_back(
      row(backward, o, 5, device.time([&] { device.kernels().attention_backward(o, dy, qkv, y, lse, dqkv); })));
}

}  // namespace

nlohmann::json attention_kernels(Device& device) {
  nlohmann::json results = nlohmann::json::array();
  for (const Attention& o : shapes) {
    time_both(device, o, "attention", "attention_backward", results);
    if (!device.kernels().set_attention_by_cudnn(o, DType::bf16, true)) continue;
    time_both(device, o, "attention by cuDNN", "attention by cuDNN, backward", results);
    device.kernels().set_attention_by_cudnn(o, DType::bf16, false);
  }
  return results;
}

}  // namespace foreshard::gpu_bench
