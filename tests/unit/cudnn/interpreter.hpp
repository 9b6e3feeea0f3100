#pragma once
#include <algorithm>
#include <functional>

#include "kernels/cuda/cudnn/graph.hpp"

namespace foreshard::kernels::cuda::cudnn {

/// Computes a graph in double, one operation after another, as cuDNN's documentation says what each means. Nothing is
/// rounded in between, whatever the types.
class Interpreter {
 public:
  explicit Interpreter(const Graph& graph) : graph_(graph), values_(graph.tensors.size()) {}

  /// What an operand has in memory, of which `from` is the beginning.
  template <class T>
  void read(Operand operand, const T* from) {
    const auto n = index_of(operand);
    const Tensor& tensor = graph_.tensors[n];
    values_[n].resize(count(tensor));
    for_elements(tensor, [&](std::size_t i, std::int64_t at) { values_[n][i] = static_cast<double>(from[at]); });
  }
  void run() {
    for (const Operation& o : graph_.operations) compute(o);
  }
  template <class T>
  void write(Operand operand, T* to) const {
    const auto n = index_of(operand);
    for_elements(graph_.tensors[n], [&](std::size_t i, std::int64_t at) { to[at] = static_cast<T>(values_[n][i]); });
  }

 private:
  using Place = std::array<std::int64_t, 4>;

  static std::size_t count(const Tensor& t) {
    return static_cast<std::size_t>(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]);
  }
  /// f(n, place in memory) of the n-th element in order of indices.
  template <class F>
  static void for_elements(const Tensor& t, F f) {
    std::size_t n = 0;
    for_places(t, [&](const Place& p) {
      f(n++, p[0] * t.strides[0] + p[1] * t.strides[1] + p[2] * t.strides[2] + p[3] * t.strides[3]);
    });
  }
  template <class F>
  static void for_places(const Tensor& t, F f) {
    for (std::int64_t a = 0; a < t.dims[0]; ++a)
      for (std::int64_t b = 0; b < t.dims[1]; ++b)
        for (std::int64_t c = 0; c < t.dims[2]; ++c)
          for (std::int64_t d = 0; d < t.dims[3]; ++d) f(Place{a, b, c, d});
  }

  const Tensor& tensor(TensorIndex n) const { return graph_.tensors[static_cast<std::size_t>(n)]; }
  std::size_t index_of(Operand operand) const {
    return static_cast<std::size_t>(std::ranges::find(graph_.tensors, operand, &Tensor::operand) -
                                    graph_.tensors.begin());
  }
  double& at(TensorIndex n, const Place& p) {
    const Tensor& t = tensor(n);
    const std::int64_t i = ((p[0] * t.dims[1] + p[1]) * t.dims[2] + p[2]) * t.dims[3] + p[3];
    return values_[static_cast<std::size_t>(n)].at(static_cast<std::size_t>(i));
  }
  /// An input's element for an element of the result; dimensions of 1 are repeated.
  double broadcast(TensorIndex n, Place p) {
    const Tensor& t = tensor(n);
    if (t.value) return static_cast<double>(*t.value);
    for (std::size_t d = 0; d < p.size(); ++d) p[d] = t.dims[d] == 1 ? 0 : p[d];
    return at(n, p);
  }

  void compute(const Operation& o);
  void multiply(const Operation& o);
  void reduce(const Operation& o, double begin, const std::function<double(double, double)>& f);
  void transpose(const Operation& o);
  double by_element(const Operation& o, const Place& p);

  const Graph& graph_;
  std::vector<std::vector<double>> values_;
};

}  // namespace foreshard::kernels::cuda::cudnn
