#include "engine/product_routes.hpp"

#include <fmt/format.h>

#include "engine/kernel_calls.hpp"
#include "engine/products.hpp"
#include "kernels/attention_route.hpp"

namespace foreshard::engine {
namespace {

using kernels::Attention;
using kernels::Matmul;
using kernels::MatmulRoute;

/// Products of bf16 matrices, as not accumulating, and the type of their results.
std::map<Matmul, DType> products_of(const plan::Plan& plan) {
  std::map<Matmul, DType> products;
  for (const plan::Op& op : plan.ops) {
    auto product = product_of(op);
    if (!product || plan.inputs(op)[0].dtype != DType::bf16) continue;
    product->accumulate = false;
    products.emplace(*product, plan.outputs(op)[0].dtype);
  }
  return products;
}

std::string name_of(const Matmul& product) {
  return fmt::format("matmul bf16 {}x{}x{}{}{}", product.m, product.n, product.k, product.transpose_a ? " ta" : "",
                     product.transpose_b ? " tb" : "");
}

/// Attention over bf16 heads, and whether it has a bias.
std::map<Attention, bool> attentions_of(const plan::Plan& plan) {
  std::map<Attention, bool> attentions;
  for (const plan::Op& op : plan.ops) {
    if (op.kind != plan::OpKind::attention && op.kind != plan::OpKind::full_attention) continue;
    const auto inputs = plan.inputs(op);
    if (inputs[0].dtype != DType::bf16) continue;
    const bool biased = inputs.size() > 3 && inputs[3].present();
    attentions.emplace(attention_of(op, biased), biased);
  }
  return attentions;
}

std::string name_of(const Attention& o, bool biased) {
  return fmt::format("attention bf16 {}x{}x{}x{} kv{}{}{}{}{}", o.batch, o.seq, o.heads, o.width, o.keys(),
                     o.causal ? " causal" : "", o.window > 0 ? fmt::format(" window{}", o.window) : "",
                     o.alibi > 0 ? " alibi" : "", biased ? " biased" : "");
}

std::string_view name_of(MatmulRoute route) { return route == MatmulRoute::native ? "native" : "widened"; }

}  // namespace

KernelChoices measure_routes(const plan::Plan& plan, kernels::Backend& kernels) {
  KernelChoices choices;
  for (const auto& [product, result] : products_of(plan))
    choices.emplace(name_of(product), name_of(choose_matmul_route(kernels, product, result)));
  for (const auto& [attention, biased] : attentions_of(plan))
    choices.emplace(name_of(attention, biased), name_of(choose_attention_route(kernels, attention, biased)));
  return choices;
}

void use_routes(const KernelChoices& choices, const plan::Plan& plan, kernels::Backend& kernels) {
  const auto is_native = [&choices](const std::string& name) {
    const auto chosen = choices.find(name);
    return chosen != choices.end() && chosen->second == "native";
  };
  kernels::MatmulRoutes products;
  for (const auto& [product, result] : products_of(plan))
    if (is_native(name_of(product))) products.of_shape[product] = MatmulRoute::native;
  kernels.set_matmul_routes(products);
  kernels::AttentionRoutes attentions;
  for (const auto& [attention, biased] : attentions_of(plan))
    if (is_native(name_of(attention, biased))) attentions.of_shape[attention] = MatmulRoute::native;
  kernels.set_attention_routes(attentions);
}

}  // namespace foreshard::engine
