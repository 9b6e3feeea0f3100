#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "base/hash.hpp"
#include "train/elements.hpp"
#include "train/self_test_parts.hpp"

namespace foreshard::train {
namespace {

using plan::GroupKind;
using plan::OpKind;

constexpr std::array<std::int64_t, 4> counts{1, 3, 17, 4099};

std::set<Collective> collectives_of(const plan::Plan& plan) {
  std::set<Collective> found;
  for (const plan::Op& op : plan.ops) {
    if (op.group == GroupKind::none) continue;
    found.insert({op.kind, op.group, op.lane, plan.inputs(op)[0].dtype, plan.outputs(op)[0].dtype, op.accumulate});
  }
  return found;
}

std::string_view name_of(GroupKind group) {
  constexpr std::string_view names[] = {"none", "shard", "replica", "world", "inner"};
  return names[static_cast<int>(group)];
}

/// Small integers: their sums over many ranks are exact in f32, and rounded once in smaller types.
double value(int rank, std::int64_t index) { return static_cast<double>((rank * 31 + index * 7) % 13 - 6); }

/// Sums of these depend on the order in which they are added.
double fraction(int rank, std::int64_t index) { return 1.0 / static_cast<double>(3 + rank * 7 + index % 101); }

std::vector<int> members_of(const plan::Mesh& mesh, GroupKind group, int rank) {
  if (group == GroupKind::shard) return mesh.shard_group(rank);
  if (group == GroupKind::replica) return mesh.replica_group(rank);
  if (group == GroupKind::inner) return mesh.inner_group(rank);
  std::vector<int> all(static_cast<std::size_t>(mesh.world_size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class CollectiveChecks {
 public:
  CollectiveChecks(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                   const Exchange& exchange)
      : communicator_(communicator),
        mesh_(plan.mesh),
        scratch_(scratch),
        exchange_(exchange),
        rank_(communicator.rank()) {}

  Checked run(const std::set<Collective>& collectives) {
    for (const Collective& c : collectives)
      for (const std::int64_t count : counts)
        if (fits(c, count)) check(c, count);
    return std::move(checked_);
  }

 private:
  std::vector<int> members(GroupKind group) const { return members_of(mesh_, group, rank_); }

  static std::int64_t lines(std::int64_t size_bytes) { return (size_bytes + 63) / 64 * 64; }

  /// Elements of input and output.
  std::pair<std::int64_t, std::int64_t> extents(const Collective& c, std::int64_t count) const {
    const std::int64_t whole = count * mesh_.members(c.group);
    if (c.gathers()) return {count, whole};
    if (c.scatters()) return {whole, count};
    return {count, count};
  }

  bool fits(const Collective& c, std::int64_t count) const {
    const auto [in, out] = extents(c, count);
    return lines(in * size_bytes(c.from)) + lines(out * size_bytes(c.to)) <= static_cast<std::int64_t>(scratch_.size());
  }

  void check(const Collective& c, std::int64_t count) {
    const auto [in, out] = extents(c, count);
    const Elements input(scratch_.data(), in, c.from);
    const Elements output(scratch_.data() + lines(in * size_bytes(c.from)), out, c.to);
    ++checked_.checks;
    call(c, count, input, output, value);
    compare(c, count, output);
    if (!c.gathers() && !c.scatters() && count == counts.back()) compare_bits(c, count, input, output);
  }

  void call(const Collective& c, std::int64_t count, const Elements& input, const Elements& output,
            double (*element)(int, std::int64_t)) {
    for (std::int64_t i = 0; i < input.count(); ++i) input.set(i, element(rank_, i));
    for (std::int64_t i = 0; i < output.count(); ++i) output.set(i, c.accumulate ? initial(i) : 77);
    exchange_(c, count, input, output);
  }

  double initial(std::int64_t index) const { return value(rank_ + 1000, index); }

  /// What output element `i` must be.
  double truth(const Collective& c, std::int64_t count, std::int64_t i) const {
    const std::vector<int> ranks = members(c.group);
    if (c.gathers()) return value(ranks[static_cast<std::size_t>(i / count)], i % count);
    const std::int64_t index = std::ranges::find(ranks, rank_) - ranks.begin(),
                       first = c.scatters() ? index * count : 0;
    double sum = c.accumulate ? initial(i) : 0;
    for (const int rank : ranks) sum += value(rank, first + i);
    return sum;
  }

  void compare(const Collective& c, std::int64_t count, const Elements& output) {
    if (!checked_.fault.empty()) return;
    std::array<std::byte, 8> word{};
    const Elements expected(word.data(), 1, c.to);
    for (std::int64_t i = 0; i < output.count(); ++i) {
      expected.set(0, truth(c, count, i));
      if (std::ranges::equal(expected.bytes(), output.bytes().subspan(static_cast<std::size_t>(i * size_bytes(c.to)),
                                                                      expected.bytes().size())))
        continue;
      checked_.fault = fmt::format("{}: element {} of {} is {}, expected {}", text(c, count), i, output.count(),
                                   output.at(i), expected.at(0));
      return;
    }
  }

  /// All members of a sum must get the same bits, also where its order matters.
  void compare_bits(const Collective& c, std::int64_t count, const Elements& input, const Elements& output) {
    Collective plain = c;
    plain.accumulate = false;
    call(plain, count, input, output, fraction);
    Hash hash;
    for (const std::byte byte : output.bytes()) hash.add(byte);
    const auto hashes = communicator_.all_gather_u64(hash.value());
    const int first = members(c.group).front();
    if (!checked_.fault.empty() || hashes[static_cast<std::size_t>(first)] == hash.value()) return;
    checked_.fault = fmt::format("{}: the result has other bits than on rank {}", text(plain, count), first);
  }

  std::string text(const Collective& c, std::int64_t count) const {
    return fmt::format("{} of {} {}{}{} in the {} group", model::name_of(c.kind), count, foreshard::name_of(c.from),
                       c.from == c.to ? "" : fmt::format(" into {}", foreshard::name_of(c.to)),
                       c.accumulate ? ", accumulating," : "", name_of(c.group));
  }

  comm::Communicator& communicator_;
  plan::Mesh mesh_;
  std::span<std::byte> scratch_;
  const Exchange& exchange_;
  int rank_;
  Checked checked_;
};

}  // namespace

Exchange exchange_between_groups(comm::Communicator& communicator, const plan::Plan& plan) {
  std::map<GroupKind, std::shared_ptr<comm::Group>> groups;
  for (const Collective& c : collectives_of(plan))
    if (!groups.contains(c.group))
      groups[c.group] = communicator.group(members_of(plan.mesh, c.group, communicator.rank()));
  return [groups](const Collective& c, std::int64_t count, const Elements& input, const Elements& output) {
    comm::Group& group = *groups.at(c.group);
    const comm::SumTypes types(c.from, c.to);
    if (c.gathers()) return group.all_gather(input.data(), output.data(), count, c.from);
    if (c.scatters()) return group.reduce_scatter(input.data(), output.data(), count, types, c.accumulate);
    group.all_reduce(input.data(), output.data(), count, types, c.accumulate);
  };
}

Checked check_collectives(comm::Communicator& communicator, const plan::Plan& plan, std::span<std::byte> scratch,
                          const Exchange& exchange) {
  return CollectiveChecks(communicator, plan, scratch, exchange).run(collectives_of(plan));
}

}  // namespace foreshard::train
