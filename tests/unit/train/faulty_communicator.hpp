#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"

namespace foreshard::train {

/// Called after a collective, by its name, with what it left on this rank.
using Spoil = std::function<void(std::string_view call, std::span<std::byte> result)>;

/// A group whose results are spoilt on their way.
class FaultyGroup final : public comm::Group {
 public:
  FaultyGroup(std::unique_ptr<comm::Group> group, Spoil spoil) : group_(std::move(group)), spoil_(std::move(spoil)) {}
  int size() const override { return group_->size(); }
  int index() const override { return group_->index(); }
  void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) override {
    group_->all_gather(shard, whole, count, dtype);
    spoil("all_gather", whole, count * size() * size_bytes(dtype));
  }
  void reduce_scatter(const void* whole, void* shard, std::int64_t count, comm::SumTypes types,
                      bool accumulate) override {
    group_->reduce_scatter(whole, shard, count, types, accumulate);
    spoil("reduce_scatter", shard, count * size_bytes(types.to));
  }
  void all_reduce(const void* x, void* sum, std::int64_t count, comm::SumTypes types, bool accumulate) override {
    group_->all_reduce(x, sum, count, types, accumulate);
    spoil("all_reduce", sum, count * size_bytes(types.to));
  }

 private:
  void spoil(std::string_view call, void* result, std::int64_t size) {
    spoil_(call, {static_cast<std::byte*>(result), static_cast<std::size_t>(size)});
  }
  std::unique_ptr<comm::Group> group_;
  Spoil spoil_;
};

/// A connection whose groups are faulty.
class FaultyCommunicator final : public comm::Communicator {
 public:
  FaultyCommunicator(comm::Communicator& ranks, Spoil spoil) : ranks_(ranks), spoil_(std::move(spoil)) {}
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  int node_rank() const override { return ranks_.node_rank(); }
  int node_size() const override { return ranks_.node_size(); }
  std::string_view transport() const override { return "a faulty network"; }
  std::span<std::byte> arena(std::int64_t size_bytes) override { return ranks_.arena(size_bytes); }
  std::vector<std::span<std::byte>> notice_board(std::int64_t size_bytes) override {
    return ranks_.notice_board(size_bytes);
  }
  std::unique_ptr<comm::Group> group(std::span<const int> members) override {
    return std::make_unique<FaultyGroup>(ranks_.group(members), spoil_);
  }
  void barrier() override { ranks_.barrier(); }
  void broadcast(std::span<std::byte> data, int root) override { ranks_.broadcast(data, root); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> data) override { return ranks_.gather(data); }
  std::vector<std::uint64_t> all_gather_u64(std::uint64_t value) override { return ranks_.all_gather_u64(value); }
  comm::Counters counters() const override { return ranks_.counters(); }
  void expect_running(std::string_view call) const override { ranks_.expect_running(call); }
  void abort(int exit_code) noexcept override { ranks_.abort(exit_code); }

 private:
  comm::Communicator& ranks_;
  Spoil spoil_;
};

/// Calls `function` on each of `size` ranks that are threads.
inline void on_ranks(int size, const std::function<void(comm::Communicator&)>& function) {
  const auto ranks = comm::make_local(size);
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) threads.emplace_back([&function, &rank] { function(*rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace foreshard::train
