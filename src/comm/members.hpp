#pragma once
#include <span>

#include "comm/communicator.hpp"

namespace foreshard::comm {

/// Position of this rank in `members`. Collective over all ranks. Throws ContractError unless the members are different
/// ranks of the run, this rank among them, and all of them named the same list.
int agree_on_members(Communicator& ranks, std::span<const int> members);

}  // namespace foreshard::comm
