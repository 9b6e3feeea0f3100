#include "trace/format.hpp"

#include <fmt/format.h>

namespace foreshard::trace {

std::string first_part(const std::string& path) { return path + ".part"; }
std::string second_part(const std::string& path) { return path + ".part2"; }

std::string other_part(const std::string& path) {
  if (path.ends_with(".part")) return path + "2";
  return path.ends_with(".part2") ? path.substr(0, path.size() - 1) : "";
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace foreshard::trace
