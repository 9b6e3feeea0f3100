#pragma once
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace foreshard {

/// 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv), fed value by value: the same on every machine of one byte
/// order.
class Hash {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) Hash& add(T value) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (std::size_t i = 0; i < sizeof(T); ++i) mix(bytes[i]);
    return *this;
  }
  Hash& add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    return add(text.size());
  }
  std::uint64_t value() const { return state_; }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace foreshard
