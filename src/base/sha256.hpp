#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace foreshard {

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece; how they are cut makes no difference.
class Sha256 {
 public:
  void add(std::span<const std::byte> data);
  /// Of all bytes added so far, as 64 lower-case hexadecimal digits.
  std::string digest() const;

  using State = std::array<std::uint32_t, 8>;

 private:
  std::span<const std::byte> fill_block(std::span<const std::byte> data);

  /// First 32 bits of the fractional parts of the square roots of the first 8 primes (FIPS 180-4, 5.3.3).
  State state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};  ///< begun, not full
  std::size_t in_block_ = 0;
  std::uint64_t size_bytes_ = 0;
};

/// The digest of `data` alone.
std::string sha256(std::span<const std::byte> data);

}  // namespace foreshard
