#include "base/error.hpp"

#include <fmt/format.h>

namespace foreshard {

void broken_contract(const char* condition, const char* file, int line, std::string_view message) {
  throw ContractError(fmt::format("broken contract at {}:{}: {} ({})", file, line, message, condition));
}

}  // namespace foreshard
