#pragma once
#include <cstdint>

namespace foreshard {

/// Resident memory of this process in bytes, pages that it shares with other processes counted in equal parts (Pss of
/// /proc/self/smaps_rollup): the sum over the ranks of a node is what the node really holds. 0 where the system does
/// not say.
std::int64_t resident_bytes();

/// Resident memory of this process in bytes, whole pages whoever else has them: `own` holds data, `files` programs and
/// libraries, of which other processes now have those of `shared_files` too.
struct ResidentKinds {
  std::int64_t own = 0, files = 0, shared_files = 0;
};
ResidentKinds resident_kinds();

}  // namespace foreshard
