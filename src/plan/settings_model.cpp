#include "plan/settings_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/hf_config.hpp"

namespace foreshard::plan {
namespace {

constexpr const char *default_preset = "gpt2", *default_lora_targets = "q_proj,v_proj";

model::Packing lora_base(const Config& config) {
  const auto& names = model::packing_names;
  const auto found = std::ranges::find(names, config.get<std::string>("model.lora_base"));
  return static_cast<model::Packing>(found - names.begin());
}

bool names_lora_targets(const Config& config) {
  return config.get<std::string>("model.lora_targets") != default_lora_targets;
}

/// What only Llama's family has.
void check_lora(const Config& config, Problems& problems) {
  const auto refuse = [&](std::string_view key) {
    problems.push_back(fmt::format("{} is set, but only models of Llama's family have LoRA here: leave it out", key));
  };
  if (config.get<std::int64_t>("model.lora_rank") > 0) refuse("model.lora_rank");
  if (lora_base(config) != model::Packing::none) refuse("model.lora_base");
  if (names_lora_targets(config)) refuse("model.lora_targets");
}

/// Lets keys replace what a model begins with, and remembers what was replaced.
class Overrides {
 public:
  Overrides(const Config& config, model::Source& source, Problems& problems)
      : config_(config), source_(source), problems_(problems) {}

  void apply(model::GptConfig& model) {
    text(model);
    refuse_llamas("GPT's");
    model.dropout = config_.get<double>("model.dropout");
  }

  void apply(model::LlamaConfig& model) {
    text(model);
    size("model.kv_heads", model.kv_heads);
    size("model.window", model.window);
    lora(model.lora);
    refuse("model.dropout", "models of Llama's family have no dropout");
  }

  void apply(model::MptConfig& model) {
    text(model);
    refuse_llamas("MPT's");
    refuse("model.dropout", "dropout of MPT's family is not modelled");
  }

  void apply(model::T5Config& model) {
    text(model);
    refuse_llamas("T5's");
    refuse("model.dropout", "dropout of T5's family is not modelled");
  }

  void apply(model::ProfileConfig&) {
    for (const char* key :
         {"model.layers", "model.width", "model.heads", "model.ffn_width", "model.kv_heads", "model.window",
          "model.vocab_size", "model.max_seq_len", "model.tied_head", "train.seq_len"})
      refuse(key, "a profile has no such size");
    refuse("model.dropout", "a profile says itself what is dropped");
  }

  void apply(model::VitConfig& model) {
    body(model);
    for (const char* key : {"model.kv_heads", "model.window", "model.vocab_size", "model.max_seq_len",
                            "model.tied_head", "train.seq_len"})
      refuse(key, "a vision transformer has no such size: a sequence is an image");
    refuse("model.dropout", "dropout of vision transformers is not modelled");
  }

 private:
  /// What only Llama's family has.
  void refuse_llamas(std::string_view whose) {
    refuse("model.kv_heads", fmt::format("in models of {} family every head has keys and values of its own", whose));
    refuse("model.window", fmt::format("attention of {} family is over whole sequences", whose));
  }

  void body(auto& model) {
    size("model.layers", model.layers);
    size("model.width", model.width);
    size("model.heads", model.heads);
    size("model.ffn_width", model.ffn_width);
  }

  void text(auto& model) {
    body(model);
    size("model.vocab_size", model.vocab_size);
    size("model.max_seq_len", model.max_seq_len);
    const auto tied = config_.get<std::string>("model.tied_head");
    if (tied != "preset") replace("model.tied_head", model.tied_head, tied == "true");
  }

  void lora(model::Lora& lora) {
    lora.rank = config_.get<std::int64_t>("model.lora_rank");
    lora.targets = 0;
    const auto list = config_.get<std::string>("model.lora_targets");
    for (const std::string_view name : split(list, ',')) lora.targets |= bits_of(trimmed(name));
    lora.base = lora_base(config_);
    if (lora.rank == 0 && names_lora_targets(config_))
      problems_.push_back(
          "model.lora_targets is set, but model.lora_rank is 0, so that none is adapted: set a rank, or leave it out");
  }

  std::uint8_t bits_of(std::string_view name) {
    if (name == "all-linear") return 0x7F;
    const auto& names = model::projection_names;
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<std::uint8_t>(1U << (found - names.begin()));
    problems_.push_back(
        fmt::format("model.lora_targets: no projection is called '{}'; expected some of {}, or all-linear.{}", name,
                    fmt::join(names, ", "), did_you_mean(name, std::span(names))));
    return 0;
  }

  void refuse(std::string_view key, std::string_view why) {
    if (is_set(key))
      problems_.push_back(fmt::format("{} is set, but {}: leave it out, or take another model", key, why));
  }

  bool is_set(std::string_view key) const {
    if (key == "model.tied_head") return config_.get<std::string>(key) != "preset";
    if (key == "model.dropout") return config_.get<double>(key) > 0;
    return config_.get<std::int64_t>(key) != 0;
  }

  void size(std::string_view key, std::int64_t& size) {
    if (const auto value = config_.get<std::int64_t>(key); value != 0) replace(key, size, value);
  }

  template <class Value>
  void replace(std::string_view key, Value& value, Value by) {
    if (value != by)
      source_.notes.push_back(
          fmt::format("{} = {} (from {}) replaces {}", key, by, config_.origin(key), text_of(value)));
    value = by;
  }

  static std::string text_of(bool value) { return value ? "true" : "false"; }
  static std::string text_of(std::int64_t size) { return size > 0 ? fmt::format("{}", size) : "what other sizes give"; }

  const Config& config_;
  model::Source& source_;
  Problems& problems_;
};

std::pair<model::Config, model::Source> begin_with(const Config& config) {
  const auto path = config.get<std::string>("model.config"), preset = config.get<std::string>("model.preset");
  if (path.empty()) {
    const model::Config model = model::preset(preset);
    return {model, {std::string(model::family_of(model)), "preset " + preset, {}}};
  }
  // A resolved configuration, which is a file, has the default preset too.
  const std::string& from = config.origin("model.preset");
  const bool asked = from == "flag" || from.starts_with("environment");
  if (preset != default_preset || asked)
    throw InputError(ExitCode::usage,
                     fmt::format("model.config = {} and model.preset = {} are both set: a plan is of one model; remove "
                                 "one of the two",
                                 path, preset));
  model::HfModel model = model::read_hf_config(path);
  return {model.config, std::move(model.source)};
}

}  // namespace

void add_model_keys(Config& config) {
  const KeyDetails size{.min = 0};
  config.add("model.preset", default_preset, fmt::format("model to begin with: {}", fmt::join(model::presets(), ", ")));
  config.add("model.config", "",
             fmt::format("or the config.json of a Hugging Face model, or its folder; families: {}",
                         fmt::join(model::hf_model_types(), ", ")));
  config.add("model.layers", 0, "transformer blocks; 0 = the preset's or the configuration's", size);
  config.add("model.width", 0, "width of the residual stream; 0 = the preset's", size);
  config.add("model.heads", 0, "attention heads; 0 = the preset's", size);
  config.add("model.kv_heads", 0, "heads of keys and values (Llama's family); 0 = the preset's", size);
  config.add("model.window", 0,
             "most tokens that a token sees, itself included (Llama's family); 0 = the preset's; a longer one than the "
             "sequence = none",
             size);
  config.add("model.vocab_size", 0, "rows of the token table; 0 = the preset's", size);
  config.add("model.max_seq_len", 0, "longest sequence; 0 = the preset's", size);
  config.add("model.ffn_width", 0, "width of the feed-forward layer; 0 = the preset's", size);
  config.add("model.tied_head", "preset", "the head shares the token table", {.choices = {"preset", "true", "false"}});
  config.add("model.dropout", 0.0, "drop probability", {.min = 0, .max = 1});
  config.add("model.lora_rank", 0,
             "train matrices of this rank beside projections alone, Llama's family; 0 = train all",
             {.min = 0, .max = 1 << 20});
  config.add(
      "model.lora_targets", default_lora_targets,
      fmt::format("projections that have them: some of {}, or all-linear", fmt::join(model::projection_names, ", ")));
  config.add(
      "model.lora_base", "none",
      "keep frozen weights of blocks' projections in four bits, with scales of 32 bits (nf4) or of 8 (nf4-dq), as "
      "QLoRA does; predicted only",
      {.choices = {model::packing_names.begin(), model::packing_names.end()}});
}

std::pair<model::Config, model::Source> read_model(const Config& config, Problems& problems) {
  std::pair<model::Config, model::Source> read;
  auto& [model, source] = read;
  try {
    read = begin_with(config);
  } catch (const InputError& error) {
    if (error.code() != ExitCode::usage) throw;
    problems.push_back(error.what());
  }
  const bool from_file = !config.get<std::string>("model.config").empty();
  Overrides overrides(config, source, problems);
  if (!std::holds_alternative<model::LlamaConfig>(model)) check_lora(config, problems);
  std::visit([&](auto& family) { overrides.apply(family); }, model);
  if (!from_file) source.notes.clear();
  if (from_file && config.get<std::int64_t>("train.seq_len") == 0)
    source.notes.push_back(
        fmt::format("train.seq_len not given: {}, the model's longest", model::dimensions(model).max_seq_len));
  return read;
}

void check_model(const model::Config& model, const model::BatchShape& batch, const model::Source& source,
                 Problems& problems) {
  std::vector<std::string> found = model::problems_of(model, batch);
  if (!found.empty() && !source.from.empty() && !source.from.starts_with("preset "))
    found.back() += fmt::format(" (sizes that no key gives are those of {})", source.from);
  problems.insert(problems.end(), found.begin(), found.end());
}

}  // namespace foreshard::plan
