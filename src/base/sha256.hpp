#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace foreshard {

/// SHA-256 (FIPS 180-4) of `data`, as 64 lower-case hexadecimal digits.
std::string sha256(std::span<const std::byte> data);

}  // namespace foreshard
