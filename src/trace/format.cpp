#include "trace/format.hpp"

#include <fmt/format.h>

namespace foreshard::trace {

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace foreshard::trace
