#include "base/units.hpp"

#include <gtest/gtest.h>

namespace foreshard {
namespace {

TEST(BytesText, UsesIecUnitsWithThreeDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.00 KiB");
  EXPECT_EQ(bytes_text(3350074491), "3.12 GiB");
  EXPECT_EQ(bytes_text(64 << 20), "64.0 MiB");
  EXPECT_EQ(bytes_text((std::int64_t{1} << 20) - 1), "1.00 MiB") << "not 1024 KiB";
  EXPECT_EQ(bytes_text(INT64_MAX), "8.00 EiB");
  EXPECT_EQ(bytes_text(-2048), "-2.00 KiB");
}

TEST(RateText, UsesDecimalUnits) {
  EXPECT_EQ(rate_text(12.34e9), "12.3 GB/s");
  EXPECT_EQ(rate_text(999.9e6), "1.00 GB/s");
  EXPECT_EQ(rate_text(12), "12 B/s");
}

TEST(DurationText, ChoosesAReadableScale) {
  EXPECT_EQ(duration_text(812e-9), "812 ns");
  EXPECT_EQ(duration_text(41.2e-6), "41.2 us");
  EXPECT_EQ(duration_text(0.1824), "182.4 ms");
  EXPECT_EQ(duration_text(1.9), "1.9 s");
  EXPECT_EQ(duration_text(59.99), "1m00s");
  EXPECT_EQ(duration_text(343), "5m43s");
  EXPECT_EQ(duration_text(3599.7), "1h00m");
  EXPECT_EQ(duration_text(7500), "2h05m");
  EXPECT_EQ(duration_text(3 * 86400 + 7200), "3d02h");
  EXPECT_EQ(duration_text(0.0 / 0.0), "n/a");
}

TEST(CountText, SeparatesThousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(5614), "5,614");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(count_text(-123), "-123");
}

TEST(ParseSize, KnowsBinaryDecimalAndBareUnits) {
  EXPECT_EQ(parse_size("64MiB"), 64 << 20);
  EXPECT_EQ(parse_size("64MB"), 64000000);
  EXPECT_EQ(parse_size("64M"), 64 << 20);
  EXPECT_EQ(parse_size("64m"), 64 << 20);
  EXPECT_EQ(parse_size("64"), 64);
  EXPECT_EQ(parse_size(" 1.5 GiB "), 3 << 29);
  EXPECT_EQ(parse_size("1KB"), 1000);
}

TEST(ParseSize, RefusesEverythingElse) {
  for (const char* text : {"", "MiB", "64Q", "-1MiB", "64MiBs", "1e3", "99999999TiB", "64 M iB"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace foreshard
