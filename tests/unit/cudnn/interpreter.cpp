#include "unit/cudnn/interpreter.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace foreshard::kernels::cuda::cudnn {

void Interpreter::compute(const Operation& o) {
  values_[static_cast<std::size_t>(o.output)].assign(count(tensor(o.output)), 0);
  switch (o.kind) {
    case Kind::matmul:
      return multiply(o);
    case Kind::largest:
      return reduce(o, -std::numeric_limits<double>::infinity(), [](double a, double b) { return std::max(a, b); });
    case Kind::sum:
      return reduce(o, 0, std::plus<>());
    case Kind::transpose:
      return transpose(o);
    default:
      for_places(tensor(o.output), [&](const Place& p) { at(o.output, p) = by_element(o, p); });
  }
}

void Interpreter::multiply(const Operation& o) {
  const Tensor &a = tensor(o.inputs[0]), &b = tensor(o.inputs[1]);
  const std::int64_t group = a.dims[1] / b.dims[1];
  for_places(tensor(o.output), [&](const Place& p) {
    double sum = 0;
    for (std::int64_t k = 0; k < a.dims[3]; ++k)
      sum += at(o.inputs[0], {p[0], p[1], p[2], k}) * at(o.inputs[1], {p[0], p[1] / group, k, p[3]});
    at(o.output, p) = sum;
  });
}

void Interpreter::reduce(const Operation& o, double begin, const std::function<double(double, double)>& f) {
  const Tensor &from = tensor(o.inputs[0]), &to = tensor(o.output);
  for_places(to, [&](const Place& p) { at(o.output, p) = begin; });
  for_places(from, [&](const Place& p) {
    Place q;
    for (std::size_t d = 0; d < p.size(); ++d) q[d] = p[d] / (from.dims[d] / to.dims[d]);
    at(o.output, q) = f(at(o.output, q), at(o.inputs[0], p));
  });
}

void Interpreter::transpose(const Operation& o) {
  for_places(tensor(o.output), [&](const Place& p) { at(o.output, p) = at(o.inputs[0], {p[0], p[1], p[3], p[2]}); });
}

double Interpreter::by_element(const Operation& o, const Place& p) {
  if (o.kind == Kind::index) return static_cast<double>(p[static_cast<std::size_t>(o.axis)]);
  const auto input = [&](std::size_t n) { return broadcast(o.inputs.at(n), p); };
  switch (o.kind) {
    case Kind::add:
      return input(0) + input(1);
    case Kind::subtract:
      return input(0) - input(1);
    case Kind::multiply:
      return input(0) * input(1);
    case Kind::divide:
      return input(0) / input(1);
    case Kind::exp:
      return std::exp(input(0));
    case Kind::log:
      return std::log(input(0));
    case Kind::at_least:
      return input(0) >= input(1) ? 1 : 0;
    case Kind::greater:
      return input(0) > input(1) ? 1 : 0;
    case Kind::select:
      return input(2) != 0 ? input(0) : input(1);
    default:
      throw std::logic_error("this operation is not by element");
  }
}

}  // namespace foreshard::kernels::cuda::cudnn
