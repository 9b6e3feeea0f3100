#include "train/kernel_choice.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "engine/products.hpp"
#include "train/agreement.hpp"

namespace foreshard::train {
namespace {

using kernels::Matmul;
using kernels::MatmulRoute;

/// Products of bf16 matrices, as not accumulating, and the type of their results.
std::map<Matmul, DType> products_of(const plan::Plan& plan) {
  std::map<Matmul, DType> products;
  for (const plan::Op& op : plan.ops) {
    auto product = engine::product_of(op);
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

/// One "name=choice" a line.
std::string measured(const plan::Plan& plan, kernels::Backend& kernels) {
  std::string lines;
  for (const auto& [product, result] : products_of(plan))
    lines += fmt::format("{}={}\n", name_of(product), name_of(choose_matmul_route(kernels, product, result)));
  return lines;
}

}  // namespace

KernelChoices choose_kernels(comm::Communicator& communicator, const plan::Plan& plan, kernels::Backend& kernels) {
  KernelChoices choices;
  if (products_of(plan).empty()) return choices;
  const std::string lines =
      text_of_rank_0(communicator, communicator.rank() == 0 ? measured(plan, kernels) : std::string());
  for (const std::string_view line : split(lines, '\n'))
    if (const std::size_t sign = line.find('='); sign != std::string_view::npos)
      choices.emplace(line.substr(0, sign), line.substr(sign + 1));
  return choices;
}

void apply(const KernelChoices& choices, const plan::Plan& plan, kernels::Backend& kernels) {
  kernels::MatmulRoutes routes;
  for (const auto& [product, result] : products_of(plan)) {
    const auto chosen = choices.find(name_of(product));
    if (chosen != choices.end() && chosen->second == "native") routes.of_shape[product] = MatmulRoute::native;
  }
  kernels.set_matmul_routes(routes);
}

}  // namespace foreshard::train
