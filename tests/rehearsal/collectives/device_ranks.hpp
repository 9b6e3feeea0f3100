#pragma once
#include <functional>
#include <optional>

#include "engine/cuda/channel_calls.hpp"
#include "engine/cuda/memory.hpp"

/// Groups over NCCL for tests that write and read on the host.
namespace foreshard::comm::testing {

/// An arena on the host, and as much memory on the device.
class Mirror {
 public:
  explicit Mirror(std::span<std::byte> host) : host_(host), device_(static_cast<std::int64_t>(host.size())) {}
  std::byte* on_device(const void* at) const {
    return device_.data() + (static_cast<const std::byte*>(at) - host_.data());
  }

 private:
  std::span<std::byte> host_;
  engine::cuda::DeviceMemory device_;
};

/// Operands go to the device before a collective, and what it leaves comes back.
class DeviceGroup final : public Group {
 public:
  DeviceGroup(nccl::Channel channel, const Communicator& host, const Mirror& mirror);

  int size() const override { return channel_.size(); }
  int index() const override { return channel_.index(); }
  void all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) override;
  void reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) override;
  void all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) override;

  const nccl::Channel& channel() const { return channel_; }

 private:
  struct Operand {
    const void* at;
    std::int64_t bytes;
  };
  void run(Operand from, Operand to, const std::function<void(std::byte* from, std::byte* to)>& call);
  void bring(Operand);
  void fetch(Operand);
  void await();
  engine::cuda::DeviceQueue queue() { return {stream_, *kernels_}; }

  nccl::Channel channel_;
  const Communicator& host_;
  const Mirror& mirror_;
  engine::cuda::Stream stream_{engine::cuda::Stream::Priority::high};
  std::unique_ptr<kernels::cuda::Kernels> kernels_;
};

/// One rank, with a device of its own. Host data go by `host`.
class DeviceRanks final : public Communicator {
 public:
  /// Collective, like all that makes channels.
  DeviceRanks(Communicator& host, nccl::Deadline deadline);

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  int node_rank() const override { return host_.node_rank(); }
  int node_size() const override { return host_.node_size(); }
  std::string_view transport() const override { return "nccl"; }
  std::span<std::byte> arena(std::int64_t size_bytes) override;
  std::vector<std::span<std::byte>> notice_board(std::int64_t size_bytes) override {
    return host_.notice_board(size_bytes);
  }
  std::unique_ptr<Group> group(std::span<const int> members) override;
  void barrier() override { host_.barrier(); }
  void broadcast(std::span<std::byte> data, int root) override { host_.broadcast(data, root); }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> data) override { return host_.gather(data); }
  std::vector<std::uint64_t> all_gather_u64(std::uint64_t value) override { return host_.all_gather_u64(value); }
  Counters counters() const override { return {}; }  ///< the engine counts
  void expect_running(std::string_view call) const override { host_.expect_running(call); }
  void abort(int exit_code) noexcept override { host_.abort(exit_code); }

 private:
  Communicator& host_;
  nccl::Deadline deadline_;
  nccl::Channel world_;
  std::optional<Mirror> mirror_;
};

}  // namespace foreshard::comm::testing
