#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

#include "comm/mpi_communicator.hpp"
#include "contract/comm/communicator_contract_cases.hpp"

namespace foreshard::comm::testing {

namespace {

int ranks_of_this_job() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size != nullptr ? std::atoi(size) : 1;
}

Run on_mpi(const std::string& name, const MpiOptions& options) {
  return {name, ranks_of_this_job(), [options](const auto& function) {
            const auto ranks = make_mpi(options);
            function(*ranks);
            ranks->barrier();
          }};
}

const auto runs = ::testing::Values(on_mpi("shared_memory", {}), on_mpi("messages", {.shared_memory = false}),
                                    on_mpi("two_ranks_per_node", {.ranks_per_node = 2}),
                                    on_mpi("short_messages", {.shared_memory = false, .longest_message_bytes = 4000}));
INSTANTIATE_TEST_SUITE_P(Mpi, GroupContract, runs, name_of_run);
INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorContract, runs, name_of_run);

std::string transport_of(const MpiOptions& options) {
  const auto ranks = make_mpi(options);
  ranks->arena(4096);
  return std::string(ranks->transport());
}

/// Where ranks are laid onto real nodes by two, as tests/net does.
bool are_on_two_nodes() {
  const auto ranks = make_mpi();
  return ranks->size() > ranks->node_size();
}

TEST(MpiTransport, SaysWhatItIs) {
  if (ranks_of_this_job() == 1) {
    EXPECT_EQ(transport_of({}), "mpi, one rank");
    return;
  }
  EXPECT_EQ(transport_of({}),
            are_on_two_nodes() ? "mpi shared memory inside nodes, mpi messages between them" : "mpi shared memory");
  EXPECT_EQ(transport_of({.shared_memory = false}), "mpi messages (no shared memory: shared memory switched off)");
  EXPECT_EQ(transport_of({.ranks_per_node = 1}), "mpi messages (one rank per node)");
}

/// The bytes of a sum, reduced by `options`.
template <class T, class To>
std::vector<unsigned char> bytes_of_a_sum(const MpiOptions& options) {
  const auto ranks = make_mpi(options);
  Deal deal(ranks->arena(mebibyte));
  const auto x = deal.next<T>(10'001);
  const auto sum = deal.next<To>(10'001);
  fill(x, ranks->rank(), 3);
  ranks->group(all_ranks(ranks->size()))->all_reduce(x.data(), sum.data(), 10'001, {dtype_of<T>, dtype_of<To>}, false);
  std::vector<unsigned char> bytes(sum.size_bytes());
  std::memcpy(bytes.data(), sum.data(), sum.size_bytes());
  return bytes;
}

TEST(MpiTransport, DoesNotChangeBits) {
  const MpiOptions messages{.shared_memory = false, .longest_message_bytes = 1000};
  EXPECT_EQ((bytes_of_a_sum<float, float>({})), (bytes_of_a_sum<float, float>(messages)));
  EXPECT_EQ((bytes_of_a_sum<Bf16, float>({})), (bytes_of_a_sum<Bf16, float>(messages)));
  EXPECT_EQ((bytes_of_a_sum<float, Bf16>({})), (bytes_of_a_sum<float, Bf16>(messages)));
}

}  // namespace

}  // namespace foreshard::comm::testing
