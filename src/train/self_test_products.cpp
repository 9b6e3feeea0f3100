#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "train/elements.hpp"
#include "train/self_test_parts.hpp"

namespace foreshard::train {
namespace {

using kernels::Matmul;
using plan::OpKind;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t rows = 5, columns = 19, poisoned_row = 2;
constexpr double untouched = 55;

/// A matrix with room before and after it.
class Matrix {
 public:
  Matrix(std::int64_t height, std::int64_t width, DType dtype, double around)
      : width_(width),
        guard_(rows_around * width),
        bytes_(static_cast<std::size_t>((height * width + 2 * guard_) * size_bytes(dtype))),
        all_(bytes_.data(), height * width + 2 * guard_, dtype) {
    for (std::int64_t i = 0; i < all_.count(); ++i) all_.set(i, around);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  void set(std::int64_t row, std::int64_t column, double value) { all_.set(guard_ + row * width_ + column, value); }
  double at(std::int64_t row, std::int64_t column) const { return all_.at(guard_ + row * width_ + column); }
  std::byte* data() { return bytes_.data() + guard_ * all_.element_bytes(); }

  /// Whether all that lies around the matrix still is `value`.
  bool surrounded_by(double value) const {
    for (std::int64_t i = 0; i < guard_; ++i)
      if (all_.at(i) != value || all_.at(all_.count() - 1 - i) != value) return false;
    return true;
  }

 private:
  std::int64_t width_, guard_;
  std::vector<std::byte> bytes_;
  Elements all_;
};

struct Types {
  DType operands{}, result{};
  auto operator<=>(const Types&) const = default;
};

std::set<Types> types_of(const plan::Plan& plan) {
  std::set<Types> found;
  for (const plan::Op& op : plan.ops)
    if (op.kind == OpKind::linear || op.kind == OpKind::linear_input_grad || op.kind == OpKind::linear_weight_grad)
      found.insert({plan.inputs(op)[0].dtype, plan.outputs(op)[0].dtype});
  return found;
}

double a_value(std::int64_t row, std::int64_t k) {
  return row == poisoned_row ? nan : static_cast<double>((row * 5 + k * 2) % 3 - 1);
}
double b_value(std::int64_t k, std::int64_t column) { return static_cast<double>((k * 7 + column * 4) % 3 - 1); }
double initial(std::int64_t row, std::int64_t column) { return static_cast<double>((row + column) % 5); }

double truth(const Matmul& shape, std::int64_t row, std::int64_t column) {
  double sum = shape.accumulate ? initial(row, column) : 0;
  for (std::int64_t k = 0; k < shape.k; ++k) sum += a_value(row, k) * b_value(k, column);
  return sum;
}

std::string text(const Matmul& shape, Types types) {
  return fmt::format("product of [{}, {}]{} and [{}, {}]{} of {} into {}", shape.m, shape.k,
                     shape.transpose_a ? "ᵀ" : "", shape.k, shape.n, shape.transpose_b ? "ᵀ" : "",
                     name_of(types.operands), name_of(types.result));
}

std::string fault_of(const Matmul& shape, Types types, const Matrix& c) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      const double seen = c.at(row, column), expected = truth(shape, row, column);
      if (seen != expected && !(std::isnan(seen) && std::isnan(expected)))
        return fmt::format("{}: element ({}, {}) is {}, expected {}; row {} is NaN", text(shape, types), row, column,
                           seen, expected, poisoned_row);
    }
  return c.surrounded_by(untouched) ? "" : text(shape, types) + ": it wrote outside its result";
}

std::string check(const Product& product, const Matmul& shape, Types types) {
  const bool ta = shape.transpose_a, tb = shape.transpose_b;
  Matrix a(ta ? shape.k : rows, ta ? rows : shape.k, types.operands, nan);
  Matrix b(tb ? columns : shape.k, tb ? shape.k : columns, types.operands, nan);
  Matrix c(rows, columns, types.result, untouched);
  for (std::int64_t k = 0; k < shape.k; ++k) {
    for (std::int64_t row = 0; row < rows; ++row) a.set(ta ? k : row, ta ? row : k, a_value(row, k));
    for (std::int64_t column = 0; column < columns; ++column)
      b.set(tb ? column : k, tb ? k : column, b_value(k, column));
  }
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) c.set(row, column, initial(row, column));
  product(shape, {a.data(), types.operands}, {b.data(), types.operands}, {c.data(), types.result});
  return fault_of(shape, types, c);
}

}  // namespace

Checked check_products(const plan::Plan& plan, const Product& product) {
  Checked checked;
  for (const Types types : types_of(plan))
    for (const std::int64_t k : {1, 31, 33, 65})
      for (const Matmul& form :
           {Matmul{.transpose_b = true}, Matmul{}, Matmul{.transpose_a = true, .accumulate = true}}) {
        Matmul shape = form;
        shape.m = rows, shape.n = columns, shape.k = k;
        ++checked.checks;
        if (checked.fault.empty()) checked.fault = check(product, shape, types);
      }
  return checked;
}

}  // namespace foreshard::train
