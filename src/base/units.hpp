#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foreshard {

/// Memory for people, in IEC units: "512 B", "3.12 GiB". Three significant digits.
std::string bytes_text(std::int64_t bytes);

/// A rate in decimal units: "12.3 GB/s".
std::string rate_text(double bytes_per_second);

/// A duration at a readable scale: "812 ns", "41.2 us", "182.4 ms", "1.9 s", "5m43s", "2h05m".
std::string duration_text(double seconds);

/// With thousands separators: "44,912".
std::string count_text(std::int64_t count);

/// Bytes from "64MiB" (2^20), "64MB" (10^6), "64M" (MiB, as in nccl-tests), "64" (bytes), spaces and fractions allowed.
/// Nothing for anything else, negative or beyond 2^63.
std::optional<std::int64_t> parse_size(std::string_view text);

}  // namespace foreshard
