// What channels do beside their collectives: ranks that do not come, calls that fail, failures elsewhere, aborts.
#include "comm/nccl/channel.hpp"

#include <gmock/gmock.h>

#include <atomic>

#include "base/error.hpp"
#include "contract/comm/group_contract.hpp"
#include "engine/cuda/collectives.hpp"
#include "engine/cuda/device.hpp"
#include "rehearsal/collectives/device_threads.hpp"

namespace foreshard::comm::testing {
namespace {

using nccl::Channel;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto short_while = std::chrono::milliseconds(30);

class Channels : public ::testing::Test {
 protected:
  void SetUp() override { rehearsal::reset(4); }
  void TearDown() override {
    const rehearsal::Live left = rehearsal::live();
    EXPECT_EQ(left.allocations, 0);
    EXPECT_EQ(left.streams, 0);
    EXPECT_EQ(left.communicators, 0);
    rehearsal::reset();
  }
};

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const LibraryError& error) {
    return error.what();
  }
  return "no error";
}

/// What a rank does of `connect` on the host, without coming to NCCL.
void stay_away(Communicator& host) {
  ncclUniqueId id{};
  host.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  host.barrier();
}

TEST_F(Channels, SayThatARankDoesNotCome) {
  on_threads(2, [](Communicator& host) {
    engine::cuda::choose_device(host);
    if (host.rank() == 1) return stay_away(host);
    EXPECT_THAT(error_of([&] { nccl::connect(host, soon(short_while)); }),
                AllOf(StartsWith("ncclCommInitRankConfig: not all ranks have come"), HasSubstr("NCCL_DEBUG=INFO")));
  });
}

TEST_F(Channels, SayThatARankDoesNotSplit) {
  on_threads(2, [](Communicator& host) {
    engine::cuda::choose_device(host);
    Channel world = nccl::connect(host, soon());
    if (host.rank() == 0) {
      EXPECT_THAT(error_of([&] { nccl::split(world, all_ranks(2), 0, soon(short_while)); }),
                  StartsWith("ncclCommSplit: not all ranks have come"));
      world.abort();
    }
    host.barrier();
  });
}

TEST_F(Channels, SayWhatNcclSays) {
  std::atomic<int> told{0};
  on_threads(2, [&](Communicator& host) {
    cudaSetDevice(0);  // both
    const std::string error = error_of([&] { nccl::connect(host, soon(short_while)); });
    EXPECT_THAT(error, StartsWith("ncclCommInitRankConfig: "));
    told += error.find("invalid usage: Duplicate GPU") != std::string::npos;
    host.barrier();
  });
  EXPECT_EQ(told, 1) << "the one that comes later";
}

TEST_F(Channels, OfAMeshLeaveNothingWhereOneIsNotMade) {
  rehearsal::fail_call("ncclCommSplit", 2, ncclSystemError);
  std::atomic<int> told{0};
  on_threads(2, [&](Communicator& host) {
    engine::cuda::choose_device(host);
    const std::string error = error_of([&] {
      engine::cuda::Collectives({1, 1, 2}, host, soon(std::chrono::seconds(2)));
    });
    EXPECT_THAT(error, StartsWith("ncclCommSplit: "));
    told += error.find("unhandled system error") != std::string::npos;
    host.barrier();
  });
  EXPECT_EQ(told, 1) << "the other waits for it";
}

constexpr std::int64_t count = 16;

/// Numbers on a device, all the same, that a stream adds to those of other ranks.
class Numbers {
 public:
  explicit Numbers(int value) {
    const std::vector<float> values(count, static_cast<float>(value));
    cudaMemcpy(memory_.data(), values.data(), count * sizeof(float), cudaMemcpyHostToDevice);
  }
  void sum(const Channel& channel) {
    channel.all_reduce(memory_.data(), memory_.data(), count, DType::f32, stream_.get());
  }
  bool idle() const { return stream_.idle(); }
  void expect(int value) const {
    while (!idle()) std::this_thread::yield();
    std::vector<float> values(count);
    cudaMemcpy(values.data(), memory_.data(), count * sizeof(float), cudaMemcpyDeviceToHost);
    EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(value)));
  }

 private:
  engine::cuda::DeviceMemory memory_{count * sizeof(float)};
  engine::cuda::Stream stream_{engine::cuda::Stream::Priority::high};
};

Channel connected(Communicator& host) {
  engine::cuda::choose_device(host);
  return nccl::connect(host, soon());
}

TEST_F(Channels, ShowAFailureOfTheNetworkWhenAsked) {
  rehearsal::fail_call("collective", 1, ncclRemoteError);
  std::atomic<int> told{0};
  on_threads(2, [&](Communicator& host) {
    Channel channel = connected(host);
    Numbers numbers(1);
    numbers.sum(channel);
    std::string error = "no error";
    while (error == "no error" && told == 0) error = error_of([&] { channel.expect_sound(); });
    if (error != "no error") {
      ++told;
      EXPECT_THAT(error, StartsWith("a collective of NCCL: remote process exited or there was a network error"));
    }
    host.barrier();
    channel.abort();
    numbers.expect(1);
  });
  EXPECT_EQ(told, 1) << "the other waits for it";
}

TEST_F(Channels, EndWhatWaitsWhenAborted) {
  on_threads(3, [](Communicator& host) {
    Channel channel = connected(host);
    Numbers numbers(host.rank());
    if (host.rank() != 2) numbers.sum(channel);
    host.barrier();
    EXPECT_EQ(numbers.idle(), host.rank() == 2);
    channel.abort();
    channel.abort();
    numbers.expect(host.rank());
    EXPECT_NO_THROW(channel.expect_sound());
    host.barrier();
  });
}

TEST_F(Channels, SurviveTheAbortOfAnother) {
  on_threads(2, [](Communicator& host) {
    const Channel channel = connected(host);
    Channel other = nccl::split(channel, all_ranks(2), host.rank(), soon());
    other.abort();
    Numbers numbers(1);
    numbers.sum(channel);
    numbers.expect(2);
    host.barrier();
  });
}

/// Queued in one order on all ranks, as NCCL wants it, and at random times.
TEST_F(Channels, OfSeveralStreamsRunBesideEachOther) {
  rehearsal::delay_streams(5, 200);
  on_threads(4, [](Communicator& host) {
    const int rank = host.rank();
    const Channel world = connected(host);
    const std::vector<int> next{rank / 2 * 2, rank / 2 * 2 + 1}, strided{rank % 2, rank % 2 + 2};
    const Channel pairs = nccl::split(world, next, rank, soon()), across = nccl::split(world, strided, rank, soon());
    Numbers of_all(1), of_pairs(1 << rank), of_strided(1 << rank);
    for (int round = 0; round < 5; ++round) {
      of_all.sum(world);
      of_pairs.sum(pairs);
      of_strided.sum(across);
    }
    of_all.expect(1024);
    of_pairs.expect(((1 << rank) + (1 << (rank ^ 1))) * 16);
    of_strided.expect(((1 << rank) + (1 << (rank ^ 2))) * 16);
    host.barrier();
  });
}

}  // namespace
}  // namespace foreshard::comm::testing
