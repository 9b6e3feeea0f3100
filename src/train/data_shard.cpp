#include "train/data_shard.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/hash_of_bytes.hpp"
#include "base/units.hpp"

namespace foreshard::train {

static_assert(std::endian::native == std::endian::little, "shards are little-endian");

namespace {

constexpr std::int64_t header_bytes = 1024;
constexpr std::int32_t magic_u16 = 20240520, magic_u32 = 20240801;

struct Format {
  std::int32_t magic, version;
  int token_bytes;
};
constexpr std::array<Format, 2> formats{{{magic_u16, 1, 2}, {magic_u32, 7, 4}}};

struct OtherFormat {
  std::int32_t magic;
  std::string_view what;
};
constexpr std::array<OtherFormat, 5> other_formats{{{20240326, "a model file of llm.c"},
                                                    {20240327, "a debug state of llm.c"},
                                                    {20240328, "a tokenizer of llm.c"},
                                                    {20240522, "an evaluation set of llm.c"},
                                                    {20240803, "a Llama model file of llm.c"}}};

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}", path.string(), why));
}

std::string unknown_format_text(std::int32_t magic) {
  constexpr std::string_view hint = "make one with `foreshard-data make`";
  for (const OtherFormat& other : other_formats) {
    if (other.magic == magic)
      return fmt::format("this is {} (magic {}), not a shard of tokens; {}", other.what, magic, hint);
  }
  return fmt::format("not a shard of tokens: it begins with {}, expected {} (16-bit tokens) or {} (32-bit); {}", magic,
                     magic_u16, magic_u32, hint);
}

using Header = std::array<std::int32_t, 256>;

Header header_of(const std::filesystem::path& path, std::span<const std::byte> mapped) {
  if (mapped.size() < header_bytes) {
    refuse(path,
           fmt::format("is {} bytes long, shorter than the header of a shard ({} bytes)", mapped.size(), header_bytes));
  }
  Header header;
  std::memcpy(header.data(), mapped.data(), sizeof header);
  return header;
}

Format format_of(const std::filesystem::path& path, const Header& header) {
  const auto* found = std::ranges::find(formats, header[0], &Format::magic);
  if (found == formats.end()) refuse(path, unknown_format_text(header[0]));
  if (header[1] != found->version) {
    refuse(path, fmt::format("is a shard of version {}, expected version {}", header[1], found->version));
  }
  return *found;
}

void check_size(const std::filesystem::path& path, std::int64_t seen, std::int64_t count, int token_bytes) {
  if (count < 0) refuse(path, fmt::format("its header says {} tokens", count));
  const std::int64_t expected = header_bytes + count * token_bytes;
  if (seen == expected) return;
  refuse(
      path,
      fmt::format(
          "{}: its header says {} tokens of {} bytes, so {} bytes are expected, but it has {}; copy or make it again",
          seen < expected ? "is truncated" : "is too long", count_text(count), token_bytes, count_text(expected),
          count_text(seen)));
}

template <class Token>
std::int64_t largest_of(std::span<const std::byte> bytes) {
  const auto* tokens = reinterpret_cast<const Token*>(bytes.data());
  return *std::max_element(tokens, tokens + bytes.size() / sizeof(Token));
}

/// Block by block, so that the file comes from the disk once.
template <class Token>
DataShard::Contents contents_of(std::span<const std::byte> bytes) {
  constexpr std::size_t block_bytes = 1 << 20;
  DataShard::Contents contents;
  Hash hash;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(block_bytes, bytes.size()))) {
    const auto block = bytes.first(std::min(block_bytes, bytes.size()));
    contents.largest_token = std::max(contents.largest_token, largest_of<Token>(block));
    hash.add(hash_of_bytes(block));
  }
  contents.hash = hash.value();
  return contents;
}

template <class Token>
void copy_tokens(std::span<const std::byte> mapped, std::int64_t first, std::span<std::int32_t> out) {
  const auto* tokens = reinterpret_cast<const Token*>(mapped.data() + header_bytes) + first;
  std::transform(tokens, tokens + out.size(), out.begin(),
                 [](Token token) { return static_cast<std::int32_t>(token); });
}

template <class Token>
void write_tokens(const std::filesystem::path& path, const Format& format, std::span<const Token> tokens) {
  FORESHARD_EXPECT(tokens.size() <= INT32_MAX, "a shard holds fewer than 2^31 tokens");
  const Header header{format.magic, format.version, static_cast<std::int32_t>(tokens.size())};
  const std::filesystem::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary);
  file.write(reinterpret_cast<const char*>(header.data()), sizeof header);
  file.write(reinterpret_cast<const char*>(tokens.data()), static_cast<std::streamsize>(tokens.size_bytes()));
  file.close();
  if (!file) throw LibraryError(fmt::format("writing {}: {}", part.string(), std::strerror(errno)));
  std::filesystem::rename(part, path);
}

}  // namespace

DataShard::DataShard(const std::filesystem::path& path) : file_(path, "a shard of tokens") {
  const Header header = header_of(path, file_.bytes());
  token_bytes_ = format_of(path, header).token_bytes;
  size_ = header[2];
  check_size(path, static_cast<std::int64_t>(file_.bytes().size()), size_, token_bytes_);
}

std::int64_t DataShard::operator[](std::int64_t index) const {
  std::int32_t token = 0;
  read(index, {&token, 1});
  return static_cast<std::uint32_t>(token);
}

void DataShard::read(std::int64_t first, std::span<std::int32_t> out) const {
  FORESHARD_EXPECT(first >= 0 && first + std::ssize(out) <= size_, "read past the end of " + path().string());
  token_bytes_ == 2 ? copy_tokens<std::uint16_t>(file_.bytes(), first, out)
                    : copy_tokens<std::uint32_t>(file_.bytes(), first, out);
}

DataShard::Contents DataShard::contents() const {
  const auto tokens = file_.bytes().subspan(header_bytes);
  return token_bytes_ == 2 ? contents_of<std::uint16_t>(tokens) : contents_of<std::uint32_t>(tokens);
}

DataShard::Contents DataShard::check_tokens(std::int64_t vocab_size) const {
  const Contents seen = contents();
  const std::int64_t largest = seen.largest_token;
  if (largest < vocab_size) return seen;
  refuse(path(), fmt::format("holds token {}, but the model's vocabulary ends at {} (model.vocab_size = {}); "
                             "use a vocabulary of at least {}, or the data this model is meant for",
                             largest, vocab_size - 1, vocab_size, largest + 1));
}

void write_shard(const std::filesystem::path& path, std::span<const std::uint16_t> tokens) {
  write_tokens(path, formats[0], tokens);
}
void write_shard(const std::filesystem::path& path, std::span<const std::uint32_t> tokens) {
  write_tokens(path, formats[1], tokens);
}

std::vector<std::filesystem::path> shard_paths(const std::string& pattern) {
  glob_t found{};
  const int result = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::filesystem::path> paths(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (!paths.empty()) return paths;
  throw InputError(ExitCode::bad_input,
                   fmt::format("no file matches `{}` (data.path, a glob pattern, seen from {}); make a data set with "
                               "`foreshard-data make --text FILE --out PREFIX`",
                               pattern, std::filesystem::current_path().string()));
}

}  // namespace foreshard::train
