#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "sim/allocator/phase_memory.hpp"

namespace foreshard::sim::allocator {

enum class Fit : std::uint8_t {
  fits,
  tight,    ///< with less room left than the prediction may be off
  retries,  ///< tensors fit, but the allocator has to give segments back and wait for the device
  no
};
inline constexpr std::array<std::string_view, 4> fit_names{"fits", "tight", "fits with retries", "does not fit"};

struct PhaseVerdict {
  PhaseMemory memory;
  Fit fit = Fit::fits;
  Bytes room = 0;  ///< of the device, beyond what is reserved; negative: missing
};

/// Whether a run fits a device, phase by phase.
struct FitVerdict {
  Bytes device = 0, outside = 0;
  std::vector<PhaseVerdict> phases;

  /// The worst of all phases.
  Fit fit() const;
  bool fits() const { return fit() != Fit::no; }
  /// The first phase that is as bad as the worst.
  const PhaseVerdict& decisive() const;
  /// A line for each phase, and why where it does not fit; `text` with one for the whole before them.
  std::string phases_text() const;
  std::string text() const;
};

/// `outside`: what others than the allocator take of the device. `margin` is the part of the device by which the
/// prediction may be off: less room is tight.
FitVerdict judge(std::span<const PhaseMemory> phases, Bytes device, Bytes outside, double margin = 0.03);

nlohmann::json to_json(const FitVerdict& verdict);

}  // namespace foreshard::sim::allocator
