#include "rehearsal/nccl/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace rehearsal {
namespace {

struct Type {
  ncclDataType_t type;
  const char* name;
  std::size_t bytes;
};
constexpr Type types[] = {{ncclInt8, "i8", 1},      {ncclUint8, "u8", 1},    {ncclInt32, "i32", 4},
                          {ncclUint32, "u32", 4},   {ncclInt64, "i64", 8},   {ncclUint64, "u64", 8},
                          {ncclFloat16, "f16", 2},  {ncclFloat32, "f32", 4}, {ncclFloat64, "f64", 8},
                          {ncclBfloat16, "bf16", 2}};

const Type& entry(ncclDataType_t type) {
  return *std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.type == type; });
}

template <class T>
T combined(T a, T b, ncclRedOp_t operation) {
  return operation == ncclMax ? std::max(a, b) : operation == ncclMin ? std::min(a, b) : static_cast<T>(a + b);
}
__nv_bfloat16 combined(__nv_bfloat16 a, __nv_bfloat16 b, ncclRedOp_t operation) {
  return __float2bfloat16_rn(combined(__bfloat162float(a), __bfloat162float(b), operation));
}
__half combined(__half a, __half b, ncclRedOp_t operation) {
  return __float2half_rn(combined(__half2float(a), __half2float(b), operation));
}

/// Calls f with a value of the C++ type.
template <class F>
void by_type(ncclDataType_t type, F f) {
  switch (type) {
    case ncclInt8:
      return f(std::int8_t{});
    case ncclUint8:
      return f(std::uint8_t{});
    case ncclInt32:
      return f(std::int32_t{});
    case ncclUint32:
      return f(std::uint32_t{});
    case ncclInt64:
      return f(std::int64_t{});
    case ncclUint64:
      return f(std::uint64_t{});
    case ncclFloat16:
      return f(__half{});
    case ncclFloat32:
      return f(float{});
    case ncclFloat64:
      return f(double{});
    case ncclBfloat16:
      return f(__nv_bfloat16{});
  }
}

/// Elements [begin, end) of all ranks' send buffers, combined from the rank behind `last` on.
template <class T>
std::vector<T> combined_piece(const std::vector<Collective>& parts, std::size_t begin, std::size_t end,
                              std::size_t last) {
  std::vector<T> piece(end - begin), next(end - begin);
  const auto read = [&](std::vector<T>& to, std::size_t rank) {
    std::memcpy(to.data(), parts[rank].send + begin * sizeof(T), to.size() * sizeof(T));
  };
  read(piece, (last + 1) % parts.size());
  for (std::size_t hop = 2; hop <= parts.size(); ++hop) {
    read(next, (last + hop) % parts.size());
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = combined(piece[i], next[i], parts[0].operation);
  }
  return piece;
}

void gather(const std::vector<Collective>& parts) {
  for (const Collective& to : parts)
    for (std::size_t rank = 0; rank < parts.size(); ++rank)
      std::memmove(to.receive + rank * parts[rank].send_bytes(1), parts[rank].send, parts[rank].send_bytes(1));
}

template <class T>
void reduce_scatter(const std::vector<Collective>& parts) {
  const std::size_t count = parts[0].count;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const auto piece = combined_piece<T>(parts, rank * count, (rank + 1) * count, rank);
    std::memcpy(parts[rank].receive, piece.data(), count * sizeof(T));
  }
}

template <class T>
void all_reduce(const std::vector<Collective>& parts) {
  const std::size_t count = parts[0].count, ranks = parts.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t begin = count * rank / ranks, end = count * (rank + 1) / ranks;
    if (begin == end) continue;
    const auto piece = combined_piece<T>(parts, begin, end, rank);
    for (const Collective& to : parts)
      std::memcpy(to.receive + begin * sizeof(T), piece.data(), piece.size() * sizeof(T));
  }
}

const char* name_of(Collective::Kind kind) {
  return kind == Collective::Kind::gather           ? "all-gather"
         : kind == Collective::Kind::reduce_scatter ? "reduce-scatter"
                                                    : "all-reduce";
}

}  // namespace

std::size_t size_of(ncclDataType_t type) { return entry(type).bytes; }

bool Collective::matches(const Collective& other) const {
  return kind == other.kind && count == other.count && type == other.type &&
         (kind == Kind::gather || operation == other.operation);
}
std::string Collective::text() const {
  const std::string of = fmt::format("{} of {} {}", name_of(kind), count, entry(type).name);
  return kind == Kind::gather || operation == ncclSum ? of : fmt::format("{} (operation {})", of, int{operation});
}
std::size_t Collective::send_bytes(int ranks) const {
  return count * size_of(type) * (kind == Kind::reduce_scatter ? ranks : 1);
}
std::size_t Collective::receive_bytes(int ranks) const {
  return count * size_of(type) * (kind == Kind::gather ? ranks : 1);
}

std::string overlap_problem(const Collective& o, int rank, int ranks) {
  const std::size_t piece = o.count * size_of(o.type) * static_cast<std::size_t>(rank);
  const bool apart = o.send + o.send_bytes(ranks) <= o.receive || o.receive + o.receive_bytes(ranks) <= o.send;
  const bool in_place = o.kind == Collective::Kind::gather           ? o.send == o.receive + piece
                        : o.kind == Collective::Kind::reduce_scatter ? o.receive == o.send + piece
                                                                     : o.receive == o.send;
  return apart || in_place ? std::string()
                           : fmt::format("{}: the buffers of rank {} overlap, but not as in place", o.text(), rank);
}

void carry_out(const std::vector<Collective>& parts) {
  switch (parts[0].kind) {
    case Collective::Kind::gather:
      return gather(parts);
    case Collective::Kind::reduce_scatter:
      return by_type(parts[0].type, [&]<class T>(T) { reduce_scatter<T>(parts); });
    case Collective::Kind::all_reduce:
      return by_type(parts[0].type, [&]<class T>(T) { all_reduce<T>(parts); });
  }
}

}  // namespace rehearsal
