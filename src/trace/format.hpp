#pragma once
#include <cstdint>
#include <string>

namespace foreshard::trace {

/// Root attributes by which a reader knows a trace. A newer minor version adds names only; a newer major one may not be
/// read.
constexpr const char* format_name = "foreshard-trace";
constexpr const char* format_version = "1.0";
constexpr int format_major = 1;

/// Present once the writer has closed the file.
constexpr const char* closed_attribute = "closed";

/// A plan's hash as text: 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace foreshard::trace
