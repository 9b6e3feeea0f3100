#pragma once
#include <cstdint>
#include <string>

namespace foreshard::trace {

/// Root attributes by which a reader knows a trace. A newer minor version adds names only; a newer major one may not be
/// read.
constexpr const char* format_name = "foreshard-trace";
constexpr const char* format_version = "1.1";
constexpr int format_major = 1;

/// Present once the writer has closed the file.
constexpr const char* closed_attribute = "closed";

/// 1 while the writer is changing the file, else 0: one left at 1 by a killed writer may lack or garble its last rows.
constexpr const char* flushing_attribute = "flushing";

/// The two files that a writer flushes in turns until it closes `path`, so that one of them is sound whenever it is
/// killed.
std::string first_part(const std::string& path);   ///< path.part
std::string second_part(const std::string& path);  ///< path.part2

/// The other of the two, or empty if `path` is neither.
std::string other_part(const std::string& path);

/// A plan's hash as text: 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace foreshard::trace
