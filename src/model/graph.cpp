#include "model/graph.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace foreshard::model {

std::int64_t Parameter::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

TensorId Graph::add_tensor(const Tensor& tensor) {
  tensors.push_back(tensor);
  return {static_cast<std::uint32_t>(tensors.size() - 1)};
}

ModuleId Graph::add_module(const std::string& path) {
  const auto found = std::ranges::find(modules, path);
  const auto index = static_cast<std::uint32_t>(found - modules.begin());
  if (found == modules.end()) modules.push_back(path);
  return {index};
}

std::int64_t Graph::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += parameter.elements();
  return count;
}

}  // namespace foreshard::model
