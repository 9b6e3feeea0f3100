#include "base/sha256.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace foreshard {
namespace {

std::string digest_of(const std::string& text) { return sha256(std::as_bytes(std::span(text))); }

// Examples of FIPS 180-4 (NIST, "Cryptographic Standards and Guidelines: Example Values", SHA256).
TEST(Sha256, MatchesThePublishedExamples) {
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
      << "56 bytes: the length needs a block of its own";
  EXPECT_EQ(digest_of(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameHoweverTheBytesAreCut) {
  const std::string text(200, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t first = 0; first <= text.size(); ++first)
    for (const std::size_t second :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}}) {
      const std::size_t middle = std::min(text.size(), first + second);
      Sha256 sum;
      sum.add(bytes.first(first));
      sum.add(bytes.subspan(first, middle - first));
      sum.add(bytes.subspan(middle));
      ASSERT_EQ(sum.digest(), digest_of(text)) << first << " + " << second;
    }
}

}  // namespace
}  // namespace foreshard
