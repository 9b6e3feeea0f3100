// Collectives between ranks, each a thread with a device of its own.
#include <nccl.h>

#include <functional>

#include "cuda_bf16.h"
#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/rehearsal.hpp"
#include "rehearsal/device/streams.hpp"

namespace rehearsal {
namespace {

class Nccl : public Rehearsal {
 protected:
  void SetUp() override { reset(4); }
};

using Rank = std::function<void(int rank, ncclUniqueId)>;

void on_ranks(int ranks, const Rank& body) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
      body(rank, id);
    });
  for (auto& thread : threads) thread.join();
}

ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    ncclCommGetAsyncError(comm, &state);
    std::this_thread::yield();
  }
  return state;
}

ncclComm_t connected(int ranks, ncclUniqueId id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, id, rank, &config), ncclInProgress);
  EXPECT_EQ(settled(comm), ncclSuccess);
  return comm;
}

void expect_accepted(ncclResult_t result, ncclComm_t comm) {
  EXPECT_TRUE(result == ncclSuccess || result == ncclInProgress) << result;
  EXPECT_EQ(settled(comm), ncclSuccess);
}

void end(ncclComm_t comm) {
  const ncclResult_t result = ncclCommFinalize(comm);
  EXPECT_TRUE(result == ncclSuccess || result == ncclInProgress);
  EXPECT_EQ(settled(comm), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(Nccl, GathersInPlace) {
  on_ranks(3, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(3, id, rank);
    std::vector<int> values(6, -1);
    values[2 * rank] = 10 * rank;
    values[2 * rank + 1] = 10 * rank + 1;
    const Array<int> x(values);
    const Queue stream;
    for (int i = 0; i < 2; ++i)
      expect_accepted(ncclAllGather(x.data() + 2 * rank, x.data(), 2, ncclInt32, comm, stream), comm);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values(), (std::vector<int>{0, 1, 10, 11, 20, 21}));
    end(comm);
  });
}

/// 1 + 2^-8 has no bf16, so that sums depend on where they begin: with rank 1's 2^-8 the first piece ends as 1 + 2^-7.
TEST_F(Nccl, AddsAroundTheRingFromTheRankBehind) {
  on_ranks(3, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(3, id, rank);
    const float of_ranks[] = {1, 0x1p-8F, 0x1p-8F};
    const Array<__nv_bfloat16> x(std::vector<__nv_bfloat16>(3, __float2bfloat16_rn(of_ranks[rank]))), y(1);
    const Queue stream;
    expect_accepted(ncclReduceScatter(x.data(), y.data(), 1, ncclBfloat16, ncclSum, comm, stream), comm);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(__bfloat162float(y.values()[0]), rank == 0 ? 1 + 0x1p-7F : 1);
    end(comm);
  });
}

TEST_F(Nccl, GivesAllRanksTheSameSum) {
  on_ranks(4, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(4, id, rank);
    const Array<std::int64_t> x(std::vector<std::int64_t>{rank, 10, -rank});
    const Queue stream;
    expect_accepted(ncclAllReduce(x.data(), x.data(), 3, ncclInt64, ncclSum, comm, stream), comm);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values(), (std::vector<std::int64_t>{6, 40, -6}));
    end(comm);
  });
}

TEST_F(Nccl, SplitsByColorInOrderOfKey) {
  on_ranks(4, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(4, id, rank);
    ncclComm_t part = nullptr;
    expect_accepted(ncclCommSplit(comm, rank % 2, -rank, &part, nullptr), comm);
    EXPECT_EQ(settled(part), ncclSuccess);
    int size = 0, place = -1;
    ncclCommCount(part, &size);
    ncclCommUserRank(part, &place);
    EXPECT_EQ(size, 2);
    EXPECT_EQ(place, rank < 2 ? 1 : 0);
    end(part);
    end(comm);
  });
}

TEST_F(Nccl, MustNotBeCalledBeforeItIsReady) {
  on_ranks(1, [](int, ncclUniqueId id) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    ncclCommInitRankConfig(&comm, 2, id, 0, &config);
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclInProgress);  // the other rank never comes
    EXPECT_EQ(ncclAllGather(nullptr, nullptr, 1, ncclInt32, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  });
}

TEST_F(Nccl, ReportsCollectivesThatDoNotMatch) {
  on_ranks(2, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(2, id, rank);
    const Array<float> x(8), y(8);
    {
      const Queue stream;
      expect_accepted(rank == 0 ? ncclAllGather(x.data(), y.data(), 4, ncclFloat32, comm, stream)
                                : ncclReduceScatter(x.data(), y.data(), 4, ncclFloat32, ncclSum, comm, stream),
                      comm);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
    }
    EXPECT_EQ(settled(comm), ncclInvalidUsage);
    ncclCommAbort(comm);
  });
  expect_report({"all-gather of 4 f32", "reduce-scatter of 4 f32", "rank 0", "rank 1", "NCCL would hang"});
}

TEST_F(Nccl, WantsADeviceForEachRank) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t first = nullptr, second = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&first, 2, id, 0, &config), ncclInProgress);
  EXPECT_EQ(ncclCommInitRankConfig(&second, 2, id, 1, &config), ncclInvalidUsage);
  expect_report({"Duplicate GPU detected"});
  ncclCommAbort(first);
}

TEST_F(Nccl, WantsBuffersApartOrInPlace) {
  on_ranks(1, [](int, ncclUniqueId id) {
    const ncclComm_t comm = connected(1, id, 0);
    const Array<float> x(8);
    const Queue stream;
    EXPECT_EQ(ncclAllReduce(x.data(), x.data() + 1, 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidArgument);
    EXPECT_EQ(ncclAllGather(x.data(), x.data() + 4, 5, ncclFloat32, comm, stream), ncclInvalidArgument);
    end(comm);
  });
}

TEST_F(Nccl, WaitsForALateRankUntilItIsAborted) {
  on_ranks(2, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(2, id, rank);
    const Array<float> x(std::vector<float>(4, 1));
    const Queue stream;
    if (rank == 0) {
      expect_accepted(ncclAllReduce(x.data(), x.data(), 4, ncclFloat32, ncclSum, comm, stream), comm);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    }
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values(), std::vector<float>(4, 1));
  });
}

TEST_F(Nccl, ShowsErrorsOfTheNetworkLater) {
  fail_call("collective", 1, ncclRemoteError);
  on_ranks(1, [](int, ncclUniqueId id) {
    const ncclComm_t comm = connected(1, id, 0);
    const Array<float> x(4);
    const Queue stream;
    ncclAllReduce(x.data(), x.data(), 4, ncclFloat32, ncclSum, comm, stream);
    settled(comm);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(settled(comm), ncclRemoteError);
    ncclCommAbort(comm);
  });
}

TEST_F(Nccl, IsReplayedInGraphs) {
  on_ranks(2, [](int rank, ncclUniqueId id) {
    const ncclComm_t comm = connected(2, id, rank);
    const Array<int> x(std::vector<int>{1});
    const Queue stream;
    expect_accepted(ncclAllReduce(x.data(), x.data(), 1, ncclInt32, ncclSum, comm, stream), comm);
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    expect_accepted(ncclAllReduce(x.data(), x.data(), 1, ncclInt32, ncclSum, comm, stream), comm);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(x.values()[0], 16);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    end(comm);
  });
}

}  // namespace
}  // namespace rehearsal
