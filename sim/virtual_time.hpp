#pragma once
#include <cstdint>

namespace foreshard::sim {

/// Virtual time is counted in 64-bit nanoseconds, and work in 2⁻¹⁶ of them: what takes longer than a day by itself does
/// not fit, and is a mistake in a rate or a size. Throws InputError(usage) that says so.
std::int64_t to_nanoseconds(double seconds);

/// Of an op, whose time is never 0.
std::int64_t op_nanoseconds(double seconds);

}  // namespace foreshard::sim
