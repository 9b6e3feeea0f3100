// LoRA: a projection W with matrices A and B beside it does what W + B·A does alone, so that their gradients follow
// from its: dA = Bᵀ·dW, dB = dW·Aᵀ.
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.hpp"
#include "families.hpp"
#include "train/initial_values.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;

constexpr std::int64_t global_rows = 24, lora_rank = 3;
constexpr double tolerance = 1e-11;

/// An element of A or B: any number that is not small.
double value_of(const std::string& name, std::int64_t index) {
  return 0.1 * std::sin(static_cast<double>(Hash().add(name).value() % 1000) + 1.7 * static_cast<double>(index));
}

struct Matrix {
  std::int64_t rows, cols;
  std::vector<double> values;
  double operator()(std::int64_t row, std::int64_t col) const {
    return values[static_cast<std::size_t>(row * cols + col)];
  }
};

Matrix filled(const std::string& name, std::int64_t rows, std::int64_t cols) {
  Matrix matrix{rows, cols, {}};
  for (std::int64_t i = 0; i < rows * cols; ++i) matrix.values.push_back(value_of(name, i));
  return matrix;
}

/// The matrices beside W [out, in].
struct Pair {
  Matrix a, b;
  Pair(const std::string& projection, std::int64_t out, std::int64_t in)
      : a(filled(projection + ".lora_A.weight", lora_rank, in)),
        b(filled(projection + ".lora_B.weight", out, lora_rank)) {}

  double product(std::int64_t row, std::int64_t col) const {
    double sum = 0;
    for (std::int64_t r = 0; r < lora_rank; ++r) sum += b(row, r) * a(r, col);
    return sum;
  }
  /// Bᵀ·dW
  std::vector<double> grad_of_a(const Matrix& dw) const {
    std::vector<double> grad;
    for (std::int64_t r = 0; r < lora_rank; ++r)
      for (std::int64_t i = 0; i < dw.cols; ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < dw.rows; ++o) sum += b(o, r) * dw(o, i);
        grad.push_back(sum);
      }
    return grad;
  }
  /// dW·Aᵀ
  std::vector<double> grad_of_b(const Matrix& dw) const {
    std::vector<double> grad;
    for (std::int64_t o = 0; o < dw.rows; ++o)
      for (std::int64_t r = 0; r < lora_rank; ++r) {
        double sum = 0;
        for (std::int64_t i = 0; i < dw.cols; ++i) sum += dw(o, i) * a(r, i);
        grad.push_back(sum);
      }
    return grad;
  }
};

/// "layers.0.mlp.up_proj", or nothing of what is no projection's weight.
std::string projection_of(const std::string& name) {
  constexpr std::string_view end = ".weight";
  return name.ends_with("_proj.weight") ? name.substr(0, name.size() - end.size()) : "";
}

const Family& family_of(bool lora) { return families()[lora ? 2 : 1]; }

RunSetup setup_of(bool lora, const Mesh& mesh) {
  const Family& family = family_of(lora);
  RunSetup setup{.settings = settings_of(family.model, family.seq, global_rows, mesh)};
  setup.learning_rates = {0};
  setup.batch = [&family](std::int64_t step) { return family.batch(global_rows, step); };
  setup.initial = [lora, seed = setup.seed](const model::Parameter& parameter, std::int64_t index) {
    if (parameter.name.find(".lora_") != std::string::npos) return value_of(parameter.name, index);
    const double base = train::initial_value(parameter, seed, index);
    const std::string projection = projection_of(parameter.name);
    if (lora || projection.empty()) return base;
    const std::int64_t out = parameter.shape[0], in = parameter.shape[1];
    return base + Pair(projection, out, in).product(index / in, index % in);
  };
  return setup;
}

/// Those of the weights of all projections.
std::map<std::string, Matrix> gradients_of_projections(const Outcome& outcome) {
  const RunSetup setup = setup_of(false, {});
  std::map<std::string, Matrix> matrices;
  for (const model::Parameter& parameter : model::build(setup.settings.model, setup.settings.batch).parameters)
    if (const std::string projection = projection_of(parameter.name); !projection.empty())
      matrices[projection] = {parameter.shape[0], parameter.shape[1], outcome.first_gradients.at(parameter.name)};
  return matrices;
}

TEST(Lora, HasTheLossAndGradientsOfTheSumOfBothMatrices) {
  const Outcome whole = run(setup_of(false, {}));
  Tensors expected;
  for (const auto& [projection, gradient] : gradients_of_projections(whole)) {
    const Pair pair(projection, gradient.rows, gradient.cols);
    expected[projection + ".lora_A.weight"] = pair.grad_of_a(gradient);
    expected[projection + ".lora_B.weight"] = pair.grad_of_b(gradient);
  }
  ASSERT_EQ(expected.size(), 3U * 7 * 2);
  for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 3}, Mesh{2, 1, 2}, Mesh{1, 2, 2}}) {
    const Outcome seen = run(setup_of(true, mesh));
    EXPECT_NEAR(seen.losses[0], whole.losses[0], tolerance * whole.losses[0]);
    EXPECT_LE(distance(expected, seen.first_gradients), tolerance) << mesh.world_size();
  }
}

}  // namespace
}  // namespace foreshard::parity
