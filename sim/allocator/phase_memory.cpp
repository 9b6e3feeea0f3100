#include "sim/allocator/phase_memory.hpp"

#include <algorithm>
#include <numeric>

namespace foreshard::sim::allocator {
namespace {

Bytes bytes_of(double count) { return static_cast<Bytes>(count); }
Bytes& of(BytesByClass& bytes, MemoryClass kind) { return bytes[std::size_t(kind)]; }
Bytes sum_of(const BytesByClass& bytes) { return std::reduce(bytes.begin(), bytes.end()); }

/// What stays on a rank: shards, and moments once there are any.
BytesByClass state(const StateNeeds& needs, bool moments) {
  BytesByClass bytes{};
  of(bytes, MemoryClass::parameters) = bytes_of(needs.parameters * needs.parameter_bytes / needs.shards);
  if (moments) of(bytes, MemoryClass::optimizer) = bytes_of(needs.parameters * needs.moment_bytes / needs.shards);
  of(bytes, MemoryClass::workspace) = needs.workspace;
  return bytes;
}

Bytes gathered(const StateNeeds& needs) {
  const double blocks = needs.parameters - needs.root_unit;
  const double units = needs.gathers > 0 ? std::min(needs.gathers * needs.largest_unit, blocks) : blocks;
  return bytes_of((needs.root_unit + units) * needs.compute_bytes);
}

/// Forward and backward, at the latter's beginning or end, whichever is more: all activations and the loss, or all
/// sharded gradients; a unit's gradient on its way.
BytesByClass pass(const StateNeeds& needs, bool moments) {
  BytesByClass bytes = state(needs, moments);
  const Bytes sharded = bytes_of(needs.parameters * needs.gradient_bytes / needs.shards);
  const Bytes saved = needs.activations + needs.loss;
  of(bytes, MemoryClass::gradients) = bytes_of(needs.largest_unit * needs.compute_bytes);
  if (sharded > saved)
    of(bytes, MemoryClass::gradients) += sharded;
  else
    of(bytes, MemoryClass::activations) = saved;
  of(bytes, MemoryClass::gathered) = gathered(needs);
  return bytes;
}

BytesByClass update(const StateNeeds& needs) {
  BytesByClass bytes = state(needs, true);
  of(bytes, MemoryClass::gradients) = bytes_of(needs.parameters * needs.gradient_bytes / needs.shards);
  if (needs.foreach) of(bytes, MemoryClass::workspace) += of(bytes, MemoryClass::parameters);
  return bytes;
}

/// The peak of several states that follow each other.
PhaseMemory peak_of(RunPhase phase, std::initializer_list<BytesByClass> states) {
  PhaseMemory memory{.phase = phase};
  Bytes gathers = 0, rest = 0;
  for (const BytesByClass& bytes : states) {
    const Bytes pool = bytes[std::size_t(MemoryClass::gathered)], sum = sum_of(bytes);
    gathers = std::max(gathers, pool), rest = std::max(rest, sum - pool);
    if (sum > memory.allocated) memory.allocated = sum, memory.by_class = bytes;
  }
  memory.reserved = gathers + rest;
  return memory;
}

BytesByClass loading(const StateNeeds& needs) {
  if (needs.loading == Loading::sharded) return state(needs, false);
  BytesByClass bytes{};
  const double largest = std::max(needs.largest_unit, needs.root_unit);
  of(bytes, MemoryClass::parameters) = bytes_of((needs.parameters + largest) * needs.load_bytes);
  return bytes;
}

BytesByClass saving(const StateNeeds& needs) {
  BytesByClass bytes = state(needs, true);
  const double whole = needs.saving == Saving::sharded ? 0
                       : needs.saving == Saving::full  ? needs.parameters
                                                       : std::max(needs.largest_unit, needs.root_unit);
  of(bytes, MemoryClass::gathered) = bytes_of(whole * needs.parameter_bytes);
  return bytes;
}

}  // namespace

std::array<PhaseMemory, 4> phases_of(const StateNeeds& needs) {
  PhaseMemory save = peak_of(RunPhase::save, {saving(needs)});
  const PhaseMemory steady = peak_of(RunPhase::steady, {pass(needs, true), update(needs)});
  save.reserved = std::max(save.reserved, steady.reserved);  // what steps have reserved stays
  return {peak_of(RunPhase::init, {loading(needs)}), peak_of(RunPhase::first_step, {pass(needs, false), update(needs)}),
          steady, save};
}

}  // namespace foreshard::sim::allocator
