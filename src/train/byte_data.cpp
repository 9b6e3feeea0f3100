#include "train/byte_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/output_files.hpp"
#include "base/units.hpp"

namespace foreshard::train {

namespace {

constexpr std::int64_t byte_values = 256;

std::string read_text(const std::filesystem::path& path) {
  const std::string text = read_whole({path, "text",
                                       "expected fewer than 2^31 bytes, of which a shard has room; split a longer text "
                                       "and make several data sets",
                                       INT32_MAX});
  if (text.empty()) throw InputError(ExitCode::bad_input, fmt::format("{}: is empty, expected a text", path.string()));
  return text;
}

void check_free(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) {
    if (!std::filesystem::exists(file)) continue;
    throw InputError(ExitCode::usage,
                     fmt::format("{}: exists; give another --out, or --force to overwrite it", file.string()));
  }
}

std::vector<std::uint16_t> tokens_of(std::string_view text) {
  std::vector<std::uint16_t> tokens(text.size());
  std::transform(text.begin(), text.end(), tokens.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return tokens;
}

Sidecar::Shard write_part(const std::filesystem::path& path, std::span<const std::uint16_t> tokens) {
  write_shard(path, tokens);
  return {path.filename().string(), sha256_of_file(path), std::ssize(tokens)};
}

}  // namespace

std::size_t split_at_line(std::string_view text, double val_fraction) {
  if (val_fraction <= 0) return text.size();
  const auto cut = static_cast<std::size_t>((1 - val_fraction) * static_cast<double>(text.size()));
  const std::size_t after = text.find('\n', cut);
  if (after != std::string_view::npos && after + 1 < text.size()) return after + 1;
  const std::size_t before = text.substr(0, cut).rfind('\n');
  return before == std::string_view::npos ? cut : before + 1;
}

std::vector<std::filesystem::path> byte_data_files(const std::string& prefix) {
  return {prefix + "_train.bin", prefix + "_val.bin", prefix + ".json"};
}

Sidecar make_byte_data(const ByteDataOptions& options) {
  const auto files = byte_data_files(options.out);
  if (!options.force) check_free(files);
  expect_no_input_overwritten(files, std::array{options.text});
  const std::string text = read_text(options.text);
  const std::vector<std::uint16_t> tokens = tokens_of(text);
  const std::size_t cut = split_at_line(text, options.val_fraction);
  const std::span all(tokens);

  Sidecar sidecar{.vocab_size = byte_values,
                  .tokenizer = "bytes",
                  .source = options.source.empty() ? options.text.string() : options.source,
                  .licence = options.licence,
                  .token_count = std::ssize(tokens),
                  .entropy = entropy_of(all)};
  make_folder(files[0].parent_path());
  sidecar.shards.push_back(write_part(files[0], all.first(cut)));
  if (cut < all.size()) sidecar.shards.push_back(write_part(files[1], all.subspan(cut)));
  write_sidecar(files[2], sidecar);
  return sidecar;
}

}  // namespace foreshard::train
