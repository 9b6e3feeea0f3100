// Streams and events: what is ordered, and that nothing else is.
#include "rehearsal/device/arrays.hpp"
#include "rehearsal/device/rehearsal.hpp"
#include "rehearsal/device/streams.hpp"

namespace rehearsal {
namespace {

class Streams : public Rehearsal {};

TEST_F(Streams, KeepTheirOrder) {
  delay_streams(1, 200);
  const Queue stream;
  const Array<int> x(64);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(start_on(stream, set_to, 2, 32, x.data(), i), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.values(), std::vector<int>(64, 19));
}

/// Copies on one stream what another one counts up; the number of copies that were made in time.
int copies_in_time(bool waits) {
  const Queue counting, copying;
  const Event counted, copied;
  const Array<int> count(1), copy(1);
  int in_time = 0;
  EXPECT_EQ(start_on(counting, set_to, 1, 1, count.data(), 0), cudaSuccess);
  for (int i = 1; i <= 20; ++i) {
    start_on(counting, add_to, 1, 1, count.data(), 1);
    cudaEventRecord(counted, counting);
    if (waits) cudaStreamWaitEvent(copying, counted);
    start_on(copying, copy_to, 1, 1, count.data(), copy.data());
    cudaEventRecord(copied, copying);
    if (waits) cudaStreamWaitEvent(counting, copied);
    cudaStreamSynchronize(copying);
    in_time += copy.values()[0] == i ? 1 : 0;
    cudaStreamSynchronize(counting);
  }
  return in_time;
}

TEST_F(Streams, WaitForEventsOfOthers) {
  delay_streams(2, 500);
  EXPECT_EQ(copies_in_time(true), 20);
}

#if !defined(__SANITIZE_THREAD__)  // which would see the race that this is
TEST_F(Streams, ShowAForgottenWaitUnderDelays) {
  delay_streams(2, 500);
  EXPECT_LT(copies_in_time(false), 20);
}
#endif

TEST_F(Streams, AnswerWhetherTheyAreDone) {
  delay_streams(3, 0);
  const Queue stream;
  const Event event;
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded
  ASSERT_EQ(cudaLaunchHostFunc(
                stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }, nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

TEST_F(Streams, MeasureTimeBetweenEvents) {
  const Queue stream;
  const Event start(cudaEventDefault), end(cudaEventDefault), untimed;
  cudaEventRecord(start, stream);
  cudaLaunchHostFunc(
      stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }, nullptr);
  cudaEventRecord(end, stream);
  cudaEventRecord(untimed, stream);
  cudaStreamSynchronize(stream);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GE(milliseconds, 2);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);
}

TEST_F(Streams, BelongToTheDeviceThatIsCurrent) {
  const Queue stream;
  const Event event;
  cudaSetDevice(1);
  EXPECT_EQ(start_on(stream, set_to, 1, 1, nullptr, 0), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  cudaSetDevice(0);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
}

TEST_F(Streams, AreOnlyRehearsedWithoutTheLegacyStream) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreate(&stream), cudaErrorNotSupported);
}

TEST_F(Streams, FailWhereTheyAreToldTo) {
  fail_call("cudaStreamWaitEvent", 2, cudaErrorUnknown);
  const Queue stream;
  const Event event;
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaErrorUnknown);
  EXPECT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
}

TEST_F(Streams, OfAFailedDeviceReturnItsErrorFromThenOn) {
  const Queue stream;
  const Array<int> x(1), y(1);
  fail_call("kernel", 2, cudaErrorECCUncorrectable);
  ASSERT_EQ(start_on(stream, set_to, 1, 1, x.data(), 1), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(y.data(), x.data(), 4, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  start_on(stream, set_to, 1, 1, x.data(), 2);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
  EXPECT_EQ(start_on(stream, set_to, 1, 1, x.data(), 1), cudaErrorECCUncorrectable);
  cudaSetDevice(1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);  // this thread's
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  reset();
  EXPECT_EQ(y.values()[0], 1);
}

TEST_F(Streams, OfNoDeviceAreNotMade) {
  reset(0);
  int count = 1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace rehearsal
