#include "base/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace foreshard {

namespace {

using State = Sha256::State;

/// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::array<std::uint32_t, 64> message_schedule(const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) {
    for (std::size_t i = 0; i < 4; ++i) w[t] = w[t] << 8 | std::to_integer<std::uint32_t>(block[4 * t + i]);
  }
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t a = w[t - 15], b = w[t - 2];
    w[t] = w[t - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[t - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  return w;
}

void compress(State& state, const std::byte* block) {
  const auto w = message_schedule(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t t1 =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
    const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

/// The last bytes, a one bit, zeros, and the length in bits: one block or two.
void finish(State& state, std::span<const std::byte> rest, std::uint64_t size_bytes) {
  std::array<std::byte, 128> tail{};
  std::ranges::copy(rest, tail.begin());
  tail[rest.size()] = std::byte{0x80};
  const std::size_t used = rest.size() + 9 <= 64 ? 64 : 128;
  for (std::size_t i = 0; i < 8; ++i) tail[used - 1 - i] = static_cast<std::byte>(size_bytes * 8 >> 8 * i);
  for (std::size_t at = 0; at < used; at += 64) compress(state, &tail[at]);
}

}  // namespace

/// Moves bytes into the block that was begun; what is left of `data`.
std::span<const std::byte> Sha256::fill_block(std::span<const std::byte> data) {
  const std::size_t count = std::min(data.size(), block_.size() - in_block_);
  std::ranges::copy(data.first(count), block_.begin() + static_cast<std::ptrdiff_t>(in_block_));
  in_block_ += count;
  if (in_block_ == block_.size()) {
    compress(state_, block_.data());
    in_block_ = 0;
  }
  return data.subspan(count);
}

void Sha256::add(std::span<const std::byte> data) {
  size_bytes_ += data.size();
  if (in_block_ > 0) data = fill_block(data);
  for (; data.size() >= block_.size(); data = data.subspan(block_.size())) compress(state_, data.data());
  fill_block(data);
}

std::string Sha256::digest() const {
  State state = state_;
  finish(state, std::span(block_).first(in_block_), size_bytes_);
  return fmt::format("{:08x}", fmt::join(state, ""));
}

std::string sha256(std::span<const std::byte> data) {
  Sha256 sum;
  sum.add(data);
  return sum.digest();
}

}  // namespace foreshard
