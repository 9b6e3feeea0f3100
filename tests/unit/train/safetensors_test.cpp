#include "train/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A file of that header and so many bytes 0, 1, 2, …
std::string file_of(const std::string& header, int bytes, std::int64_t length = -1) {
  const std::int64_t said = length < 0 ? static_cast<std::int64_t>(header.size()) : length;
  std::string text(8, '\0');
  std::memcpy(text.data(), &said, 8);
  text += header;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i);
  return text;
}

constexpr const char* two_tensors =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
    R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[24,25]}}  )";

struct Safetensors : testing::Test {
  TemporaryFolder folder;
  std::filesystem::path file = folder / "x.safetensors";

  /// What is said of a file of that text.
  std::string refusal(const std::string& text) {
    write(file, text);
    try {
      read_safetensors(file);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      return error.what();
    }
    return "";
  }
};

TEST_F(Safetensors, ReadsWhatTheHeaderSays) {
  write(file, file_of(two_tensors, 25));
  const auto tensors = read_safetensors(file);
  ASSERT_EQ(tensors.size(), 2U);
  const StoredTensor &a = tensors.at("a"), &b = tensors.at("b");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(a.dtype, DType::f32);
  EXPECT_EQ(b.type, "BOOL");
  EXPECT_FALSE(b.dtype);
  EXPECT_EQ(b.elements(), 1);
  std::array<std::byte, 3> bytes;
  read_bytes(a, 4, bytes);
  EXPECT_EQ(bytes, (std::array{std::byte{4}, std::byte{5}, std::byte{6}}));
}

TEST_F(Safetensors, RefusesWhatIsNotWhole) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal(""), HasSubstr("not a whole safetensors file"));
  EXPECT_THAT(refusal(file_of("{}", 0, 3)), HasSubstr("a header of 3 bytes in a file of 10"));
  EXPECT_THAT(refusal(file_of("{}", 0, INT64_MAX)), HasSubstr("not a whole safetensors file"));
  EXPECT_THAT(refusal(file_of("[1]", 0)), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(file_of(R"({"a":3})", 0)), HasSubstr("tensor a: it has no dtype"));
  EXPECT_THAT(refusal(file_of(two_tensors, 24)), HasSubstr("tensor b: it ends at byte"));
  EXPECT_EQ(refusal(file_of(two_tensors, 25)), "");
}

TEST_F(Safetensors, RefusesTensorsThatDoNotAddUp) {
  using testing::HasSubstr;
  const auto of = [&](const char* type, const char* shape, const char* offsets) {
    return refusal(file_of(
        std::string(R"({"a":{"dtype":")") + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
        64));
  };
  EXPECT_EQ(of("F16", "[4,8]", "[0,64]"), "");
  EXPECT_THAT(of("F17", "[4]", "[0,8]"), HasSubstr("its type F17 is unknown"));
  EXPECT_THAT(of("F16", "[4]", "[0,9]"), HasSubstr("9 bytes for 4 elements of F16"));
  EXPECT_THAT(of("F16", "[-4]", "[0,8]"), HasSubstr("shape has -4"));
  EXPECT_THAT(of("F16", "[4.5]", "[0,8]"), HasSubstr("shape has 4.5"));
  EXPECT_THAT(of("F16", "4", "[0,8]"), HasSubstr("it has no shape"));
  EXPECT_THAT(of("F16", "[4]", "[8,0]"), HasSubstr("not a begin and an end"));
  EXPECT_THAT(of("F16", "[4]", "[8]"), HasSubstr("not a begin and an end"));
  EXPECT_THAT(of("F16", "[4294967296,4294967296,4294967296]", "[0,8]"), HasSubstr("a shape of"));
}

TEST_F(Safetensors, AnIndexNamesFilesBesideIt) {
  using testing::HasSubstr;
  write(file, file_of(two_tensors, 25));
  const auto index = folder / "model.safetensors.index.json";
  write(index, R"({"weight_map":{"a":"x.safetensors"}})");
  EXPECT_EQ(read_safetensors_model(folder.path()).size(), 1U);
  EXPECT_EQ(read_safetensors_model(index).count("a"), 1U);
  const auto refusal_of = [&](const char* text) -> std::string {
    write(index, text);
    try {
      read_safetensors_model(index);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal_of(R"({"weight_map":{"c":"x.safetensors"}})"), HasSubstr("c is in x.safetensors, but it is not"));
  EXPECT_THAT(refusal_of(R"({"weight_map":{"a":"../x.safetensors"}})"), HasSubstr("a file beside the index"));
  EXPECT_THAT(refusal_of(R"({"weight_map":{"a":{"file":"x"}}})"), HasSubstr("a file beside the index"));
  EXPECT_THAT(refusal_of(R"({"weight_map":{"a":"y.safetensors"}})"), HasSubstr("there is no such file"));
  EXPECT_THAT(refusal_of("{"), HasSubstr("no weight_map"));
}

TEST_F(Safetensors, AFolderWithoutAModelIsRefused) {
  EXPECT_THROW(read_safetensors_model(folder.path()), InputError);
  EXPECT_THROW(read_safetensors_model(folder / "none.safetensors"), InputError);
}

TEST_F(Safetensors, NoChangedByteIsMoreThanRefused) {
  const std::string whole = file_of(two_tensors, 25);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    std::string text = whole;
    const auto words = philox(1, 2, i);
    text[words[0] % (text.size() - 25)] = static_cast<char>(words[1]);
    if (words[2] % 4 == 0) text.resize(words[3] % text.size());
    write(file, text);
    try {
      for (const auto& [name, tensor] : read_safetensors(file)) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes));
        read_bytes(tensor, 0, bytes);
      }
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace foreshard::train
