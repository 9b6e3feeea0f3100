// foreshard-data: makes token shards from text and image shards from other files, and describes shards.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/run_main.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "train/byte_data.hpp"
#include "train/image_data.hpp"

namespace {

using namespace foreshard;
using Json = nlohmann::ordered_json;

int done() { return static_cast<int>(ExitCode::done); }

void print_rails(const train::Entropy& entropy, std::int64_t vocab_size) {
  fmt::print("rails (nats per token): uniform {:.3f}, unigram {:.3f}, bigram {:.3f}; {} different tokens\n",
             std::log(static_cast<double>(vocab_size)), entropy.unigram, entropy.bigram, entropy.distinct);
}

Config make_options() {
  Config config("foreshard-data make", "Makes a data set of a text: token = byte, vocabulary 256.");
  config.example("foreshard-data make --text devil.txt --out data/devil");
  config.add("text", "", "the text to read");
  config.add("out", "", "prefix of the files to write: PREFIX_train.bin, PREFIX_val.bin, PREFIX.json");
  config.add("val-fraction", 0.1, "part of the text, at its end, for validation", {.min = 0, .max = 0.9});
  config.add("source", "", "note for the sidecar: where the text comes from; without it, the file's name");
  config.add("licence", "", "note for the sidecar: under which terms");
  config.add("force", false, "overwrite files that exist");
  return config;
}

void require(const Config& config, std::string_view option) {
  if (!config.get<std::string>(option).empty()) return;
  throw InputError(ExitCode::usage, fmt::format("--{}: is needed", option));
}

int make(int argc, char** argv) {
  Config config = make_options();
  config.parse(argc, argv);
  if (answered(config)) return done();
  require(config, "text");
  require(config, "out");
  const auto out = config.get<std::string>("out");
  const train::Sidecar sidecar = train::make_byte_data({.text = config.get<std::string>("text"),
                                                        .out = out,
                                                        .val_fraction = config.get<double>("val-fraction"),
                                                        .source = config.get<std::string>("source"),
                                                        .licence = config.get<std::string>("licence"),
                                                        .force = config.get<bool>("force")});
  const std::filesystem::path folder = std::filesystem::path(out).parent_path();
  for (const auto& shard : sidecar.shards) {
    fmt::print("{}: {} tokens\n", (folder / shard.file).string(), count_text(shard.tokens));
  }
  fmt::print("{}.json: vocabulary {}, tokenizer {}\n", out, sidecar.vocab_size, sidecar.tokenizer);
  print_rails(sidecar.entropy, sidecar.vocab_size);
  return done();
}

Config image_options() {
  Config config("foreshard-data images", "Makes a data set of labelled images, for models of images.");
  config.example("foreshard-data images --format cifar10 --files data_batch_1.bin,data_batch_2.bin --out data/cifar");
  config.example("foreshard-data images --format synthetic --count 5000 --classes 10 --side 32 --out data/shapes");
  config.add("format", "cifar10", "what to read, or synthetic: patterns with noise, a function of the seed",
             {.choices = {"cifar10", "cifar100", "idx", "synthetic"}});
  config.add("files", "", "cifar: binary files, comma-separated; idx: the file of images, then that of labels");
  config.add("count", 5000, "of synthetic images", {.min = 1, .max = 1 << 24});
  config.add("classes", 10, "of synthetic images", {.min = 1, .max = 1 << 16});
  config.add("side", 32, "of synthetic images", {.unit = "pixels", .min = 1, .max = 1024});
  config.add("seed", 1234, "of synthetic images");
  config.add("out", "", "prefix of the files to write: PREFIX_train.bin, PREFIX_val.bin");
  config.add("val-fraction", 0.1, "part of the images, at the end, for validation", {.min = 0, .max = 0.9});
  config.add("force", false, "overwrite files that exist");
  return config;
}

train::LabelledImages images_of(const Config& config) {
  const auto format = config.get<std::string>("format");
  if (format == "synthetic")
    return train::synthetic_images(config.get<std::int64_t>("count"), config.get<std::int64_t>("classes"),
                                   config.get<std::int64_t>("side"),
                                   static_cast<std::uint64_t>(config.get<std::int64_t>("seed")));
  require(config, "files");
  const auto list = config.get<std::string>("files");
  const auto names = split(list, ',');
  const std::vector<std::filesystem::path> files(names.begin(), names.end());
  if (format != "idx") return train::read_cifar(files, format == "cifar100");
  if (files.size() == 2) return train::read_idx(files[0], files[1]);
  throw InputError(ExitCode::usage, fmt::format("--files={}: expected a file of images and one of labels", list));
}

int make_images(int argc, char** argv) {
  Config config = image_options();
  config.parse(argc, argv);
  if (answered(config)) return done();
  require(config, "out");
  const train::LabelledImages images = images_of(config);
  for (const auto& file : train::write_image_data(images, config.get<std::string>("out"),
                                                  config.get<double>("val-fraction"), config.get<bool>("force")))
    fmt::print("{}: {} images of {} x {} x {}, {} classes\n", file.string(), count_text(train::ImageShard(file).size()),
               images.shape.channels, images.shape.height, images.shape.width, images.classes);
  return done();
}

/// Facts of one shard, checked against its sidecar where there is one.
Json facts_of(const std::filesystem::path& path) {
  const train::DataShard shard(path);
  const train::Entropy entropy = train::entropy_of(shard);
  Json facts{{"file", path.string()},
             {"tokens", shard.size()},
             {"token_bytes", shard.token_bytes()},
             {"largest_token", shard.contents().largest_token},
             {"distinct_tokens", entropy.distinct},
             {"unigram_entropy_nats", entropy.unigram},
             {"bigram_entropy_nats", entropy.bigram},
             {"sha256", train::sha256_of_file(path)}};
  const auto sidecar_file = train::sidecar_path(path);
  if (const auto sidecar = train::read_sidecar(sidecar_file)) {
    facts["sidecar"] = {{"file", sidecar_file.string()},   {"vocab_size", sidecar->vocab_size},
                        {"tokenizer", sidecar->tokenizer}, {"source", sidecar->source},
                        {"licence", sidecar->licence},     {"matches", nullptr}};
    for (const auto& listed : sidecar->shards) {
      if (listed.file == path.filename()) facts["sidecar"]["matches"] = listed.sha256 == facts["sha256"];
    }
  }
  return facts;
}

void print_facts(const Json& facts) {
  fmt::print("{}: {} tokens of {} bytes, largest {}\n", facts["file"].get<std::string>(), count_text(facts["tokens"]),
             facts["token_bytes"].get<int>(), facts["largest_token"].get<std::int64_t>());
  const bool described = facts.contains("sidecar");
  const std::int64_t vocab_size =
      described ? facts["sidecar"]["vocab_size"].get<std::int64_t>() : facts["largest_token"].get<std::int64_t>() + 1;
  print_rails({facts["unigram_entropy_nats"], facts["bigram_entropy_nats"], facts["distinct_tokens"]}, vocab_size);
  if (!described) return fmt::print("sidecar: none\n");
  for (const auto& [name, value] : facts["sidecar"].items()) {
    if (name != "matches" && value != "")
      fmt::print("  {}: {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

void check_digest(const Json& facts) {
  if (!facts.contains("sidecar") || facts["sidecar"]["matches"] != false) return;
  throw InputError(ExitCode::bad_input,
                   fmt::format("{}: its SHA-256 is {}, not what {} says; the file has changed: make the data set again",
                               facts["file"].get<std::string>(), facts["sha256"].get<std::string>(),
                               facts["sidecar"]["file"].get<std::string>()));
}

int info(int argc, char** argv) {
  Config config("foreshard-data info", "Describes token shards: count, vocabulary seen, entropies, sidecar.");
  config.example("foreshard-data info data/devil_train.bin data/devil_val.bin");
  config.add_arguments("FILE...", "token shards", 1, 1 << 20);
  config.add("json", false, "print one JSON object");
  config.parse(argc, argv);
  if (answered(config)) return done();
  Json all{{"schema", "foreshard-data-info"}, {"schema_version", 1}, {"shards", Json::array()}};
  for (const std::string& path : config.arguments()) all["shards"].push_back(facts_of(path));
  if (config.get<bool>("json")) fmt::print("{}\n", json_text(all));
  for (const Json& facts : all["shards"]) {
    if (!config.get<bool>("json")) print_facts(facts);
    check_digest(facts);
  }
  return done();
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "make") == 0) return make(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "images") == 0) return make_images(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "info") == 0) return info(argc - 1, argv + 1);
  Config config("foreshard-data",
                "Makes and describes data sets of tokens, in the layout of llm.c, and of labelled images.");
  config.example("foreshard-data make --text devil.txt --out data/devil");
  config.example("foreshard-data info data/devil_train.bin");
  config.add("json", false, "with --version: as JSON");
  config.add_arguments("make|images|info", "what to do; each has its own --help", 0, 1);
  config.parse(argc, argv);
  if (answered(config)) return done();
  const std::string given = config.arguments().empty() ? "nothing" : "`" + config.arguments().front() + "`";
  throw InputError(ExitCode::usage, fmt::format("{} given, expected make, images or info", given));
}

}  // namespace

int main(int argc, char** argv) {
  return foreshard::run_main("foreshard-data", [&] { return run(argc, argv); });
}
