#include "train/elements.hpp"

#include <cstring>

#include "base/half.hpp"

namespace foreshard::train {
namespace {

/// Calls `visit(T{})` with the type that `dtype` names.
template <class Visit>
auto with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f64:
      return visit(double{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::f16:
      return visit(Float16{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::f32:
      break;
  }
  return visit(float{});
}

}  // namespace

void Elements::set(std::int64_t index, double value) const {
  with_type(dtype_, [&]<class T>(T) {
    const auto rounded = static_cast<T>(value);
    std::memcpy(data_ + index * static_cast<std::int64_t>(sizeof(T)), &rounded, sizeof(T));
  });
}

double Elements::at(std::int64_t index) const {
  return with_type(dtype_, [&]<class T>(T value) {
    std::memcpy(&value, data_ + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return static_cast<double>(value);
  });
}

}  // namespace foreshard::train
