#include "sim/allocator/device_memory.hpp"

#include <gtest/gtest.h>

namespace foreshard::sim::allocator {
namespace {

ProcessGroup in_node(int ranks, bool all_reduces = false) { return {{ranks, ranks, 1}, all_reduces}; }

const Software torch_2_1{{2, 18, 3}, true}, recent{{2, 28, 3}, true};

TEST(DeviceMemory, OfCommunicatorsOnFourA100IsThatOfNcclIssue964) {
  const Cluster dgx = read_cluster("dgx-a100");
  EXPECT_EQ(communicator_memory(dgx, torch_2_1, in_node(2), TreePlace::end).total(), 544 * mib);
  EXPECT_EQ(communicator_memory(dgx, torch_2_1, in_node(3), TreePlace::end).total(), 688 * mib);
  EXPECT_EQ(communicator_memory(dgx, torch_2_1, in_node(4), TreePlace::end).total(), 688 * mib);
}

/// 0.55 GiB before, 2.00 after, on two A100.
TEST(DeviceMemory, OfTheFirstBarrierIsThePublishedOne) {
  const Cluster dgx = read_cluster("dgx-a100");
  const OutsideMemory memory = outside_memory(dgx, torch_2_1, {in_node(2)});
  const double barrier = double(memory.total()) - memory.context.value;
  EXPECT_NEAR(barrier / double(gib), 1.45, 0.01);
  EXPECT_NEAR(memory.context.value / double(gib), 0.47, 1e-9);
}

/// nccl#864: about 1.6 GB for a first communicator with an all-reduce; the devices are not named.
TEST(DeviceMemory, OfAFirstCommunicatorIsNearNcclIssue864) {
  const OutsideMemory memory = outside_memory(read_cluster("dgx-a100"), torch_2_1, {in_node(8, true)});
  EXPECT_NEAR((double(memory.total()) - memory.context.value) / 1e9, 1.6, 0.3);
}

/// nccl#1685 lists buffers of 10 485 760 and 2 097 152 B on H100; a ring has one of each for every channel.
TEST(DeviceMemory, OfARingOnH100IsTwoEndsForEveryChannel) {
  const Cluster dgx = read_cluster("dgx-h100");
  const CommunicatorMemory memory = communicator_memory(dgx, recent, in_node(8));
  const network::Layout layout{8, 1, 8};
  const int channels = network::launched_channels(dgx, layout, network::ring_graph(dgx, layout));
  EXPECT_EQ(memory.connections, channels * Bytes{10'485'760 + 2'097'152});
  EXPECT_EQ(memory.multicast, 268'435'456) << "as NCCL prints it for 8 ranks";
}

TEST(DeviceMemory, TreesAreConnectedAtOnceOrWhenTheyAreUsed) {
  const Cluster dgx = read_cluster("dgx-a100");
  const Bytes gathers = communicator_memory(dgx, recent, in_node(8)).total();
  const Bytes reduces = communicator_memory(dgx, recent, in_node(8, true)).total();
  EXPECT_GT(reduces, gathers);
  EXPECT_EQ(communicator_memory(dgx, torch_2_1, in_node(8)).total(), reduces);
}

TEST(DeviceMemory, DoesNotGrowBeyondTwoNodes) {
  const Cluster dgx = read_cluster("dgx-a100");
  const auto of = [&](int ranks) { return communicator_memory(dgx, recent, {{ranks, 8, 1}, false}).total(); };
  EXPECT_GT(of(16), 0);
  EXPECT_EQ(of(16), of(512));
}

TEST(DeviceMemory, OfAGroupOfOneIsNothing) {
  const OutsideMemory alone = outside_memory(read_cluster("dgx-a100"), recent, {in_node(1)});
  EXPECT_EQ(alone.total(), static_cast<Bytes>(alone.context.value));
}

TEST(DeviceMemory, OfAHybridIsThatOfTwoGroups) {
  const Cluster dgx = read_cluster("dgx-a100");
  const OutsideMemory memory = outside_memory(dgx, recent, {{{8, 8, 1}, false}, {{4, 1, 8}, true}});
  ASSERT_EQ(memory.communicators.size(), 2u);
  EXPECT_EQ(memory.total(), static_cast<Bytes>(memory.context.value + memory.first_communicator.value) +
                                memory.communicators[0].total() + memory.communicators[1].total());
}

TEST(DeviceMemory, OnMi250XIsThePublishedOneForEachGroup) {
  const OutsideMemory memory = outside_memory(read_cluster("frontier"), recent, {in_node(8), in_node(8)});
  EXPECT_NEAR((double(memory.total()) - memory.context.value) / double(gib), 1 + 2 * 0.65, 1e-6);
}

TEST(DeviceMemory, WorkspacesAreThoseOfPyTorch) {
  EXPECT_EQ(blas_workspace_bytes(read_device("a100-sxm-80gb")), (2 * 4096 + 8 * 16) * 1024);
  EXPECT_EQ(blas_workspace_bytes(read_device("h100-sxm")), 32 * mib);
  EXPECT_EQ(blas_workspace_bytes(read_device("b200")), 32 * mib);
  EXPECT_EQ(blas_workspace_bytes(read_device("mi300x")), 128 * mib);
  EXPECT_EQ(blas_workspace_bytes(read_device("mi250x")), 32 * mib);
  EXPECT_EQ(blaslt_workspace_bytes(read_device("h100-sxm")), mib);
}

TEST(DeviceMemory, SaysWhereItsNumbersAreFrom) {
  for (const char* name : {"dgx-a100", "dgx-h100", "frontier", "8x-rtx-4090"}) {
    const OutsideMemory memory = outside_memory(read_cluster(name), recent, {in_node(4)});
    for (const std::string& source :
         {memory.context.source, memory.first_communicator.source, memory.communicators[0].rest.source})
      EXPECT_TRUE(source.starts_with("published") || source.starts_with("assumed")) << name << ": " << source;
  }
}

}  // namespace
}  // namespace foreshard::sim::allocator
