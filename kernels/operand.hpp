#pragma once
#include <cstdint>
#include <string>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "kernels/backend.hpp"

namespace foreshard::kernels {

template <class T>
inline constexpr DType dtype_of = DType::i64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;

inline std::string type_mismatch(DType seen, DType expected) {
  return std::string("operand is ").append(name_of(seen)).append(", expected ").append(name_of(expected));
}

/// The elements of an operand, or null if it is absent. Its type must be T.
template <class T>
const T* as(const Const& operand) {
  FORESHARD_EXPECT(operand.data == nullptr || operand.dtype == dtype_of<T>, type_mismatch(operand.dtype, dtype_of<T>));
  return static_cast<const T*>(operand.data);
}
template <class T>
T* as(const Mut& operand) {
  FORESHARD_EXPECT(operand.data == nullptr || operand.dtype == dtype_of<T>, type_mismatch(operand.dtype, dtype_of<T>));
  return static_cast<T*>(operand.data);
}

}  // namespace foreshard::kernels
