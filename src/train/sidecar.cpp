#include "train/sidecar.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/sha256.hpp"

namespace foreshard::train {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Sidecar& sidecar) {
  Json json;
  json["schema"] = "foreshard-data";
  json["schema_version"] = 1;
  json["vocab_size"] = sidecar.vocab_size;
  json["tokenizer"] = sidecar.tokenizer;
  json["source"] = sidecar.source;
  json["licence"] = sidecar.licence;
  json["token_count"] = sidecar.token_count;
  json["distinct_tokens"] = sidecar.entropy.distinct;
  json["unigram_entropy_nats"] = sidecar.entropy.unigram;
  json["bigram_entropy_nats"] = sidecar.entropy.bigram;
  json["shards"] = Json::array();
  for (const auto& shard : sidecar.shards) {
    json["shards"].push_back({{"file", shard.file}, {"tokens", shard.tokens}, {"sha256", shard.sha256}});
  }
  return json;
}

Sidecar sidecar_of(const Json& json) {
  Sidecar sidecar;
  sidecar.vocab_size = json.at("vocab_size");
  sidecar.tokenizer = json.at("tokenizer");
  sidecar.source = json.at("source");
  sidecar.licence = json.at("licence");
  sidecar.token_count = json.at("token_count");
  sidecar.entropy = {json.at("unigram_entropy_nats"), json.at("bigram_entropy_nats"), json.at("distinct_tokens")};
  for (const Json& shard : json.at("shards")) {
    sidecar.shards.push_back({shard.at("file"), shard.at("sha256"), shard.at("tokens")});
  }
  return sidecar;
}

}  // namespace

std::filesystem::path sidecar_path(const std::filesystem::path& shard) {
  std::string stem = shard.stem().string();
  for (const std::string_view end : {"_train", "_val"}) {
    if (stem.ends_with(end)) stem.resize(stem.size() - end.size());
  }
  return shard.parent_path() / (stem + ".json");
}

void write_sidecar(const std::filesystem::path& path, const Sidecar& sidecar) {
  const std::string text = json_text(json_of(sidecar));
  std::ofstream file(path);
  file << text << '\n';
  file.close();
  if (!file) throw LibraryError(fmt::format("writing {}: is the disk full?", path.string()));
}

std::optional<Sidecar> read_sidecar(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  try {
    return sidecar_of(Json::parse(file));
  } catch (const Json::exception& error) {
    throw InputError(ExitCode::bad_input,
                     fmt::format("{}: not the description of a data set ({}); make the data set again", path.string(),
                                 error.what()));
  }
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw InputError(ExitCode::bad_input, fmt::format("{}: cannot be read", path.string()));
  return sha256(std::as_bytes(std::span(bytes)));
}

}  // namespace foreshard::train
