// Capture and replay: the same work again, and what a capture must not hold.
#include <functional>

#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/rehearsal.hpp"
#include "rehearsal/device/streams.hpp"

namespace rehearsal {
namespace {

class Graphs : public Rehearsal {
 protected:
  void begin() { ASSERT_EQ(cudaStreamBeginCapture(origin_, cudaStreamCaptureModeThreadLocal), cudaSuccess); }
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(origin_, &graph);
    if (error != cudaSuccess) return error;
    EXPECT_EQ(cudaGraphInstantiate(&graph_, graph), cudaSuccess);
    return cudaGraphDestroy(graph);
  }
  void TearDown() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    cudaStreamDestroy(origin_);
    cudaStreamDestroy(side_);
    Rehearsal::TearDown();
  }
  void SetUp() override {
    Rehearsal::SetUp();
    cudaStreamCreateWithFlags(&origin_, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking);
  }

  cudaStream_t origin_ = nullptr, side_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

TEST_F(Graphs, DoTheSameWorkAgain) {
  const Array<int> x(std::vector<int>{0});
  begin();
  ASSERT_EQ(start_on(origin_, add_to, 1, 1, x.data(), 3), cudaSuccess);
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(x.values()[0], 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(graph_, origin_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(origin_), cudaSuccess);
  EXPECT_EQ(x.values()[0], 9);
}

TEST_F(Graphs, ForkAndJoinByEvents) {
  delay_streams(4, 300);
  const Array<int> x(std::vector<int>{1}), y(std::vector<int>{0});
  const Event forked, joined;
  begin();
  start_on(origin_, add_to, 1, 1, x.data(), 1);
  ASSERT_EQ(cudaEventRecord(forked, origin_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side_, forked), cudaSuccess);
  start_on(side_, copy_to, 1, 1, x.data(), y.data());
  ASSERT_EQ(cudaEventRecord(joined, side_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(origin_, joined), cudaSuccess);
  start_on(origin_, add_to, 1, 1, y.data(), 10);
  ASSERT_EQ(end(), cudaSuccess);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(cudaGraphLaunch(graph_, origin_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(origin_), cudaSuccess);
  EXPECT_EQ(x.values()[0], 6);
  EXPECT_EQ(y.values()[0], 16);
}

TEST_F(Graphs, MustJoinWhatTheyForked) {
  const Array<int> x(1);
  const Event forked;
  begin();
  cudaEventRecord(forked, origin_);
  cudaStreamWaitEvent(side_, forked);
  start_on(side_, set_to, 1, 1, x.data(), 1);
  EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(start_on(side_, set_to, 1, 1, x.data(), 2), cudaSuccess);  // as before
  cudaStreamSynchronize(side_);
  EXPECT_EQ(x.values()[0], 2);
}

TEST_F(Graphs, MustNotWaitForWhatIsNotInThem) {
  const Event before;
  cudaEventRecord(before, side_);
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(origin_, before), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Graphs, MustNotMakeTheHostWait) {
  for (const auto& call : std::vector<std::function<cudaError_t()>>{[&] { return cudaStreamSynchronize(origin_); },
                                                                    [&] { return cudaStreamQuery(origin_); },
                                                                    [] { return cudaDeviceSynchronize(); },
                                                                    [] {
                                                                      int* x = nullptr;
                                                                      return cudaMalloc(&x, 4);
                                                                    }}) {
    begin();
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  }
}

TEST_F(Graphs, KeepTheirEventsToThemselves) {
  const Event inside;
  begin();
  cudaEventRecord(inside, origin_);
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(inside), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(side_, inside), cudaErrorCapturedEvent);
  cudaEventRecord(inside, side_);
  EXPECT_EQ(cudaEventSynchronize(inside), cudaSuccess);
}

TEST_F(Graphs, AreOfOneThreadIfAskedFor) {
  begin();
  cudaError_t error = cudaErrorUnknown;
  std::thread([&] {
    int* x = nullptr;
    error = cudaMalloc(&x, 4);
    cudaFree(x);
  }).join();
  EXPECT_EQ(error, cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
}

TEST_F(Graphs, EndOnTheStreamWhereTheyBegan) {
  const Event forked, joined;
  begin();
  cudaEventRecord(forked, origin_);
  cudaStreamWaitEvent(side_, forked);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorIllegalState);
}

}  // namespace
}  // namespace rehearsal
