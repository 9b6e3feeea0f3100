#include "base/hash_of_bytes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace foreshard {
namespace {

TEST(HashOfBytes, ChangesWithEachBitAndWithTheLength) {
  std::vector<std::byte> bytes(75);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::span part = std::span(bytes).first(size);
    const std::uint64_t before = hash_of_bytes(part);
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      part[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_NE(hash_of_bytes(part), before) << "bit " << bit << " of " << size << " bytes";
      part[bit / 8] ^= std::byte{1} << bit % 8;
    }
    EXPECT_NE(hash_of_bytes(std::vector<std::byte>(size + 1)), before) << size << " bytes";
  }
}

}  // namespace
}  // namespace foreshard
