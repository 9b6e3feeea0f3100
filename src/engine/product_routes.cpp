#include "engine/product_routes.hpp"

#include <fmt/format.h>

#include "engine/products.hpp"

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

std::string_view name_of(MatmulRoute route) { return route == MatmulRoute::native ? "native" : "widened"; }

}  // namespace

KernelChoices measure_routes(const plan::Plan& plan, kernels::Backend& kernels) {
  KernelChoices choices;
  for (const auto& [product, result] : products_of(plan))
    choices.emplace(name_of(product), name_of(choose_matmul_route(kernels, product, result)));
  return choices;
}

void use_routes(const KernelChoices& choices, const plan::Plan& plan, kernels::Backend& kernels) {
  kernels::MatmulRoutes routes;
  for (const auto& [product, result] : products_of(plan)) {
    const auto chosen = choices.find(name_of(product));
    if (chosen != choices.end() && chosen->second == "native") routes.of_shape[product] = MatmulRoute::native;
  }
  kernels.set_matmul_routes(routes);
}

}  // namespace foreshard::engine
