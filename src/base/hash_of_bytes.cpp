#include "base/hash_of_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace foreshard {
namespace {

constexpr std::uint64_t prime = 0x100000001b3ULL;  // of 64-bit FNV-1a; odd, so that multiplying by it loses nothing
constexpr std::size_t word_bytes = sizeof(std::uint64_t);

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min(word_bytes, bytes.size() - at));
  return word;
}

void mix(std::uint64_t& state, std::uint64_t word) {
  state = (state ^ word) * prime;
  state ^= state >> 32;
}

}  // namespace

std::uint64_t hash_of_bytes(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 4> chains{1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + sizeof chains <= bytes.size(); at += sizeof chains)
    for (std::size_t chain = 0; chain < chains.size(); ++chain)
      mix(chains[chain], word_at(bytes, at + chain * word_bytes));
  for (; at < bytes.size(); at += word_bytes) mix(chains[0], word_at(bytes, at));
  std::uint64_t all = bytes.size();
  for (const std::uint64_t chain : chains) mix(all, chain);
  return all;
}

}  // namespace foreshard
