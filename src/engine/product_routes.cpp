#include "engine/product_routes.hpp"

#include <fmt/format.h>

#include "engine/attentions.hpp"
#include "engine/products.hpp"
#include "kernels/attention_route.hpp"

namespace foreshard::engine {
namespace {

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

/// Of bf16 heads.
std::set<AttentionCall> routed_attentions_of(const plan::Plan& plan) {
  std::set<AttentionCall> calls = attentions_of(plan);
  std::erase_if(calls, [](const AttentionCall& call) { return call.dtype != DType::bf16; });
  return calls;
}

std::string_view name_of(MatmulRoute route) { return route == MatmulRoute::native ? "native" : "widened"; }

}  // namespace

KernelChoices measure_routes(const plan::Plan& plan, kernels::Backend& kernels) {
  KernelChoices choices;
  for (const auto& [product, result] : products_of(plan))
    choices.emplace(name_of(product), name_of(choose_matmul_route(kernels, product, result)));
  for (const AttentionCall& call : routed_attentions_of(plan))
    choices.emplace(name_of(call), name_of(choose_attention_route(kernels, call.shape, call.biased)));
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
  for (const AttentionCall& call : routed_attentions_of(plan))
    if (is_native(name_of(call))) attentions.of_shape[call.shape] = MatmulRoute::native;
  kernels.set_attention_routes(attentions);
}

}  // namespace foreshard::engine
