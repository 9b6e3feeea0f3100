#include "base/input_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class InputFiles : public ::testing::Test {
 protected:
  InputFile file_of(const std::string& content) {
    const auto path = folder_ / "content";
    std::ofstream(path, std::ios::binary) << content;
    return {path, "table", "expected numbers"};
  }

  std::string refusal_of(const InputFile& file) {
    try {
      read_whole(file);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST_F(InputFiles, AreReadWhole) {
  for (const std::size_t size : {0, 1, (1 << 20) - 1, 1 << 20, (5 << 20) + 3}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i % 251);
    EXPECT_TRUE(read_whole(file_of(content)) == content) << size;
  }
}

TEST_F(InputFiles, MayHaveAsManyBytesAsIsSaid) {
  InputFile file = file_of("1234");
  file.most_bytes = 4;
  EXPECT_EQ(read_whole(file), "1234");
  file.most_bytes = 3;
  EXPECT_THAT(refusal_of(file), AllOf(HasSubstr("content: larger than 3 B"), HasSubstr("; expected numbers")));
}

TEST_F(InputFiles, WithoutAnEndAreRefused) {
  EXPECT_THAT(refusal_of({"/dev/zero", "table", "expected numbers"}),
              HasSubstr("table /dev/zero: larger than 64.0 MiB; expected numbers"));
}

TEST_F(InputFiles, ThatCannotBeReadAreRefusedWithTheReason) {
  EXPECT_THAT(refusal_of({folder_.path(), "", "expected numbers"}), HasSubstr(": cannot be read (it is a folder)"));
  EXPECT_THAT(refusal_of({folder_ / "none", "", "expected numbers"}),
              HasSubstr("none: cannot be read (No such file or directory); expected numbers"));
}

TEST_F(InputFiles, ThatAreNoFilesAreCalledWhatTheyAre) {
  EXPECT_EQ(why_no_file(file_of("1").path), "");
  EXPECT_EQ(why_no_file(folder_ / "none"), "there is no such file");
  EXPECT_EQ(why_no_file(folder_.path()), "it is a folder, not a file");
  EXPECT_THAT(why_no_file("/dev/zero"), HasSubstr("device"));
}

}  // namespace
}  // namespace foreshard
