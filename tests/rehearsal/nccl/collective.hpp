#pragma once
#include <string>
#include <vector>

#include "nccl.h"

namespace rehearsal {

/// One rank's part in a collective. `count` is that of the smaller side; pointers are where memory really is.
struct Collective {
  enum class Kind { gather, reduce_scatter, all_reduce };
  Kind kind = Kind::gather;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  const char* send = nullptr;
  char* receive = nullptr;

  /// Whether two ranks' parts are of one collective.
  bool matches(const Collective&) const;
  std::string text() const;  ///< "all-gather of 128 f32"
  std::size_t send_bytes(int ranks) const;
  std::size_t receive_bytes(int ranks) const;
};

std::size_t size_of(ncclDataType_t);

/// What is wrong with how the two sides of one rank lie, or empty: they are apart, or in place as NCCL defines it.
std::string overlap_problem(const Collective&, int rank, int ranks);

/// All ranks' parts. Sums of the piece that rank r gets begin with rank r + 1 and go around, rounded to their type at
/// each rank, as in NCCL's ring; an all-reduce has as many pieces as ranks.
void carry_out(const std::vector<Collective>&);

}  // namespace rehearsal
