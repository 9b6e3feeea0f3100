#pragma once
#include <deque>

#include "engine/engine.hpp"
#include "train/self_test_parts.hpp"

namespace foreshard::train {

/// Single ops of a plan's kinds, carried out by an engine as plans of one op: operands come from and go back to host
/// memory, and lie meanwhile in the part of the device arena that holds nothing between two steps. They are issued op
/// by op, which also makes a device load what they need before a step is captured.
class EngineTrials {
 public:
  /// Both outlive it, and it outlives no step.
  EngineTrials(engine::Engine& engine, const plan::Plan& plan);

  /// Of the device, for all operands of one op.
  std::size_t room_bytes() const { return static_cast<std::size_t>(room_bytes_); }

  /// All members of a group call it alike.
  Exchange exchange();
  /// Of matrices with what lies around them.
  Product product();

 private:
  /// Host memory, and where in its copy on the device the operand begins.
  struct Operand {
    std::span<std::byte> bytes;
    std::int64_t before = 0, size_bytes = 0;
    DType dtype = DType::f32;
  };
  static Operand whole(const Elements& elements);
  void run(plan::Op op, std::span<const Operand> inputs, const Operand& output);

  engine::Engine& engine_;
  const plan::Plan& plan_;
  std::int64_t first_byte_, room_bytes_;
  std::deque<plan::Plan> trials_;  // an engine may keep what it has prepared for a plan
};

}  // namespace foreshard::train
