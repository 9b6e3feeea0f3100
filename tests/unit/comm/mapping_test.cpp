#include "comm/mapping.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "base/error.hpp"
#include "comm/split.hpp"

namespace foreshard::comm {

namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const LibraryError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Mapping, IsSeenByWhoAttaches) {
  Mapping made = Mapping::shared(10'000);
  const Mapping attached = Mapping::attach(made.name(), 10'000);
  made.data()[9999] = std::byte{7};
  EXPECT_EQ(attached.data()[9999], std::byte{7});
  attached.data()[0] = std::byte{8};
  EXPECT_EQ(made.data()[0], std::byte{8});
}

TEST(Mapping, LargerThanMemoryIsAPlanThatDoesNotFit) {
  try {
    const Mapping made = Mapping::anonymous(std::int64_t{1} << 50);
    FAIL() << "mapped";
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::infeasible);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("1.00 PiB"), HasSubstr("train.local_batch_size")));
  }
}

TEST(Mapping, OutlivesItsName) {
  Mapping made = Mapping::shared(4096);
  const MappingName name = made.name();
  const Mapping attached = Mapping::attach(name, 4096);
  made.close_name();
  EXPECT_THAT(error_of([&] { Mapping::attach(name, 4096); }), HasSubstr("/proc/"));
  made.data()[0] = std::byte{1};
  EXPECT_EQ(attached.data()[0], std::byte{1});
}

TEST(Mapping, NoticesThatANameMeansSomethingElse) {
  const Mapping one = Mapping::shared(4096), other = Mapping::shared(4096);
  MappingName name = one.name();
  name.descriptor = other.name().descriptor;
  EXPECT_THAT(error_of([&] { Mapping::attach(name, 4096); }), HasSubstr("different process numbers"));
}

TEST(Mapping, MovesItsMemory) {
  Mapping first = Mapping::anonymous(4096);
  std::byte* data = first.data();
  Mapping second = std::move(first);
  EXPECT_EQ(second.data(), data);
  second = Mapping::anonymous(8192);
  EXPECT_EQ(second.size_bytes(), 8192);
}

TEST(PartOf, CoversEverythingOnceAndEvenly) {
  for (const std::int64_t count : {0L, 1L, 7L, 8L, 1003L, (1L << 62) + 5}) {
    for (const int size : {1, 2, 3, 8, 100}) {
      std::int64_t end = 0;
      for (int i = 0; i < size; ++i) {
        const Range part = part_of(count, i, size);
        EXPECT_EQ(part.begin, end);
        EXPECT_LE(part.length() - count / size, 1);
        EXPECT_GE(part.length(), count / size);
        end = part.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

}  // namespace

}  // namespace foreshard::comm
