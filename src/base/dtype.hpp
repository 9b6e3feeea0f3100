#pragma once
#include <cstdint>
#include <string_view>

namespace foreshard {

/// Element types of tensors, buffers and messages.
enum class DType : std::uint8_t { f32, f64, bf16, f16, i32, i64 };

/// Size of one element in bytes.
constexpr std::int64_t size_bytes(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f32:
    case DType::i32:
      break;
  }
  return 4;
}

constexpr std::string_view name_of(DType type) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "f16", "i32", "i64"};
  return names[static_cast<int>(type)];
}

}  // namespace foreshard
