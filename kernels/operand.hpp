#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/half.hpp"
#include "kernels/backend.hpp"

namespace foreshard::kernels {

template <class T>
inline constexpr DType dtype_of = DType::i64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<Float16> = DType::f16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

/// The type in which numbers stored as T are computed, and in which their statistics are kept.
template <class T>
using Computed = std::conditional_t<is_half<T>, float, T>;

inline std::string type_mismatch(DType seen, std::initializer_list<DType> expected) {
  std::string text = std::string("operand is ").append(name_of(seen)).append(", expected ");
  for (const DType& type : expected) text.append(&type == expected.begin() ? "" : " or ").append(name_of(type));
  return text;
}

/// The elements of an operand, or null if it is absent. Its type must be T.
template <class T>
const T* as(const Const& operand) {
  FORESHARD_EXPECT(operand.data == nullptr || operand.dtype == dtype_of<T>,
                   type_mismatch(operand.dtype, {dtype_of<T>}));
  return static_cast<const T*>(operand.data);
}
template <class T>
T* as(const Mut& operand) {
  FORESHARD_EXPECT(operand.data == nullptr || operand.dtype == dtype_of<T>,
                   type_mismatch(operand.dtype, {dtype_of<T>}));
  return static_cast<T*>(operand.data);
}

/// Calls f with a value of the one of `Types` that `type` names; throws ContractError if none does.
template <class... Types, class F>
void by_type(DType type, F f) {
  const bool known = ((type == dtype_of<Types> && (f(Types{}), true)) || ...);
  FORESHARD_EXPECT(known, type_mismatch(type, {dtype_of<Types>...}));
}

/// The type of the first of two results that is present, else `otherwise`.
inline DType type_of_present(const Mut& a, const Mut& b, DType otherwise) {
  return a.data ? a.dtype : b.data ? b.dtype : otherwise;
}

/// The same as by_type for a result of operands of type T: a parameter's gradient, or a product.
template <class T, class F>
void by_result_type(DType type, F f) {
  if constexpr (is_half<T>)
    by_type<T, float>(type, f);
  else
    by_type<T>(type, f);
}

}  // namespace foreshard::kernels
