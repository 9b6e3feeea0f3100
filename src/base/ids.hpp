#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace foreshard {

/// A strong index: ids of different things do not mix. `none()` means "no such thing".
template <class Tag>
struct Id {
  std::uint32_t value = UINT32_MAX;

  static constexpr Id none() { return {}; }
  constexpr bool valid() const { return value != UINT32_MAX; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace foreshard
