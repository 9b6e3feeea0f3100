#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/abort_flag.hpp"
#include "comm/communicator.hpp"
#include "comm/mapping.hpp"
#include "comm/signal.hpp"
#include "comm/tally.hpp"

namespace foreshard::comm {

/// Memory of the members that this process can read, whether they are its threads or other processes of the node.
struct PeerMemory {
  std::vector<std::byte*> arenas;  ///< of each member by position, as mapped here
  std::int64_t arena_bytes = 0;    ///< the same for all
  int index = 0;                   ///< position of this rank
};

/// A group whose members read each other's arenas directly: nobody sends, each member fetches what it needs, and
/// signals say when that may begin and when all have finished. A large all-reduce goes through scratch of the group,
/// chunk by chunk. Members check that they are in the same call; a mismatch throws ContractError on those who see it.
class SharedGroup final : public Group {
 public:
  /// Size of the memory shared by a group's members for signals and scratch; pages of scratch are touched only by
  /// all_reduce.
  static std::int64_t region_bytes(int members);

  /// `region` has `region_bytes`, zeroed before the first member begins. `abort` and `tally` outlive the group. `spins`
  /// as for Signal::wait.
  SharedGroup(PeerMemory memory, std::shared_ptr<const Mapping> region, const AbortFlag& abort, Tally& tally,
              int spins);

  int size() const override { return static_cast<int>(memory_.arenas.size()); }
  int index() const override { return memory_.index; }
  void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) override;
  void reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) override;
  void all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) override;

 private:
  enum class Kind : std::uint8_t { all_gather, reduce_scatter, all_reduce };
  struct Call {
    Kind kind = Kind::all_gather;
    SumTypes types = DType::f32;
    bool accumulate = false;
    std::int64_t count = 0;
    bool operator==(const Call&) const = default;
  };
  /// What a member tells the others: what it calls, and where in its arena lies what they read.
  struct alignas(64) Member {
    Signal signal;
    Call call;
    std::int64_t offset = 0;
  };
  struct Chunk;

  static const char* name_of(Kind kind);
  static std::string describe(const Call& call);
  Member& member(int i) const { return reinterpret_cast<Member*>(region_->data())[i]; }
  std::byte* scratch(int member, int turn) const;
  const std::byte* source(int member) const { return memory_.arenas[member] + this->member(member).offset; }
  std::int64_t offset_of(const void* pointer, std::int64_t size_bytes) const;

  void enter(const Call& call, const void* source, std::int64_t size_bytes);
  void await(int member);
  void await_all();
  void signal_and_await_all();
  void expect_same_call(int member) const;
  std::vector<const void*> sources(std::int64_t skip_bytes) const;
  void reduce_own_part(const Chunk& chunk) const;
  void collect_parts(const Chunk& chunk, std::byte* sum) const;

  PeerMemory memory_;
  std::shared_ptr<const Mapping> region_;
  const AbortFlag& abort_;
  Tally& tally_;
  int spins_;
  Call call_;
};

}  // namespace foreshard::comm
