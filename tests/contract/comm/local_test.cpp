#include <gmock/gmock.h>

#include "contract/comm/communicator_contract_cases.hpp"

namespace foreshard::comm::testing {

namespace {

void on_threads(int size, const std::function<void(Communicator&)>& function) {
  const auto ranks = make_local(size);
  std::vector<std::thread> threads;
  for (const auto& rank : ranks) {
    threads.emplace_back([&function, &rank] {
      try {
        function(*rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank->rank() << ": " << error.what();
        rank->abort(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Run threads(int size) {
  return {"threads_" + std::to_string(size), size, [size](const auto& function) { on_threads(size, function); }};
}

const auto runs =
    ::testing::Values(threads(1), threads(2), threads(3), threads(4), threads(5), threads(8), threads(16));
INSTANTIATE_TEST_SUITE_P(Local, GroupContract, runs, name_of_run);
INSTANTIATE_TEST_SUITE_P(Local, CommunicatorContract, runs, name_of_run);

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const LibraryError& error) {
    return error.what();
  }
  return "no error";
}

/// Rank 2 of 3 ends the run while the others wait in `call`.
void expect_ended(const std::function<void(Communicator&, Group&, std::byte*)>& call, const std::string& name) {
  on_threads(3, [&](Communicator& ranks) {
    std::byte* data = ranks.arena(1 << 20).data();
    const auto group = ranks.group(all_ranks(3));
    if (ranks.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ranks.abort(5);
      return;
    }
    EXPECT_THAT(error_of([&] { call(ranks, *group, data); }),
                ::testing::AllOf(::testing::StartsWith(name + ":"), ::testing::HasSubstr("rank 2"),
                                 ::testing::HasSubstr("code 5")));
  });
}

TEST(LocalAbort, EndsBlockedCallsByName) {
  expect_ended([](auto&, Group& group, std::byte* data) { group.all_gather(data, data + 4096, 9, DType::f32); },
               "all_gather");
  expect_ended(
      [](auto&, Group& group, std::byte* data) { group.reduce_scatter(data, data + 4096, 9, DType::f32, true); },
      "reduce_scatter");
  expect_ended([](auto&, Group& group, std::byte* data) { group.all_reduce(data, data, 9, DType::f32, false); },
               "all_reduce");
  expect_ended([](Communicator& ranks, auto&, auto*) { ranks.barrier(); }, "barrier");
  expect_ended([](Communicator& ranks, auto&, auto*) { ranks.gather({}); }, "gather");
  expect_ended([](Communicator& ranks, auto&, auto*) { ranks.all_gather_u64(1); }, "all_gather_u64");
}

/// The two members of a group make these calls; who sees the difference names both.
void expect_told(const std::function<void(Group&, std::byte*)>& first, const std::string& first_name,
                 const std::function<void(Group&, std::byte*)>& second, const std::string& second_name) {
  std::atomic<int> told{0};
  on_threads(2, [&](Communicator& ranks) {
    std::byte* data = ranks.arena(1 << 16).data();
    const auto group = ranks.group(all_ranks(2));
    try {
      (ranks.rank() == 0 ? first : second)(*group, data);
    } catch (const ContractError& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr(first_name), ::testing::HasSubstr(second_name)));
      ++told;
      ranks.abort(1);
    } catch (const LibraryError&) {
    }
  });
  EXPECT_GE(told, 1);
}

TEST(LocalGroup, MembersInDifferentCallsAreToldSo) {
  expect_told([](Group& group, std::byte* data) { group.all_gather(data, data + 4096, 9, DType::f32); },
              "all_gather of 9 f32",
              [](Group& group, std::byte* data) { group.reduce_scatter(data, data + 4096, 10, DType::f32, false); },
              "reduce_scatter of 10 f32");
}

TEST(LocalGroup, MembersThatWantDifferentResultsAreToldSo) {
  expect_told(
      [](Group& group, std::byte* data) {
        group.reduce_scatter(data, data + 4096, 9, {DType::bf16, DType::f32}, true);
      },
      "reduce_scatter of 9 bf16 into f32, accumulating",
      [](Group& group, std::byte* data) { group.reduce_scatter(data, data + 4096, 9, DType::bf16, true); },
      "in reduce_scatter of 9 bf16, accumulating");
}

TEST(LocalGroup, RefusesBuffersOutsideTheArena) {
  on_threads(1, [&](Communicator& ranks) {
    std::byte* data = ranks.arena(4096).data();
    const auto group = ranks.group(all_ranks(1));
    EXPECT_THROW(group->all_gather(data + 4000, data, 100, DType::f32), ContractError);
  });
}

}  // namespace

}  // namespace foreshard::comm::testing
