#include "train/checkpoint_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/sha256.hpp"
#include "train/checkpoint_state.hpp"

namespace foreshard::train {
namespace {

using Json = nlohmann::json;

constexpr const char* schema = "foreshard-checkpoint";
constexpr int version = 1, most_depth = 32;

std::string dumped(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

/// `body` and the digest of its text.
std::string sealed(const Json& body) {
  const std::string text = dumped(body);
  return fmt::format("{{\n  \"body\": {},\n  \"sha256\": \"{}\"\n}}\n", text, sha256(std::as_bytes(std::span(text))));
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("{} is not whole: {}", path.string(), why));
}

/// The body of a sealed text, which is exactly what `sealed` made of it.
Json unsealed(const std::string& text, const std::filesystem::path& path) {
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > most_depth) refuse(path, "it is not a manifest");  // which writing it again would follow by recursion
    return true;
  };
  const Json json = Json::parse(text, shallow, false);
  if (!json.is_object() || !json.contains("body")) refuse(path, "it is not a manifest");
  if (sealed(json["body"]) != text) refuse(path, "its text is not the one that was written (SHA-256 differs)");
  return json["body"];
}

Json json_of(const std::vector<FileEntry>& files) {
  Json list = Json::array();
  for (const FileEntry& file : files)
    list.push_back({{"name", file.name}, {"size_bytes", file.size_bytes}, {"sha256", file.sha256}});
  return list;
}

std::vector<FileEntry> files_of(const Json& list) {
  std::vector<FileEntry> files;
  for (const Json& file : list)
    files.push_back({file.at("name"), file.at("size_bytes").get<std::int64_t>(), file.at("sha256")});
  return files;
}

Json model_facts(const model::Config& model) {
  Json facts = Json::object();
  for (const auto& [name, value] : model::layout_facts(model))
    std::visit([&facts, key = std::string(name)](auto v) { facts[key] = v; }, value);
  return facts;
}

/// Which parameters lie where in a unit's flat parameter: units of the same size may hold others, or in another order.
std::string pieces_text(const plan::FlatParameter& unit, const model::Graph& graph) {
  const auto name = [&](const plan::FlatPiece& piece) { return graph.parameters[piece.parameter.value].name; };
  if (unit.pieces.empty()) return "none";
  Hash hash;
  for (const plan::FlatPiece& piece : unit.pieces) hash.add(name(piece)).add(piece.offset).add(int{piece.trainable});
  return fmt::format("{} to {}, {} parameters, {:016x}", name(unit.pieces.front()), name(unit.pieces.back()),
                     unit.pieces.size(), hash.value());
}

Json unit_facts(const plan::Plan& plan, const model::Graph& graph) {
  Json units = Json::object();
  for (std::size_t i = 0; i < plan.units.size(); ++i)
    units[plan.unit_names[i]] = {{"elements", plan.units[i].elements},
                                 {"shard_elements", plan.units[i].shard_elements},
                                 {"parameters", pieces_text(plan.units[i], graph)}};
  return units;
}

/// Which steps count for which parameter.
Json partial_facts(const plan::PartialSteps& steps) {
  Json facts = Json::object();
  if (!steps.blocks.empty()) facts["skip"] = {{"blocks", steps.blocks}, {"every", steps.every}};
  if (!steps.frozen.empty()) facts["frozen"] = {{"parameters", steps.frozen}, {"steps", steps.frozen_steps}};
  return facts;
}

Json state_facts(const plan::Plan& plan) {
  Json bytes = Json::object();
  for (const StateBuffer& state : state_of(plan)) bytes[state.name] = plan.buffers[state.buffer.value].size_bytes;
  return bytes;
}

/// "/model/layers" as "model.layers", without what keys call `/`.
std::string dotted(const std::string& pointer) {
  std::string name = pointer.substr(std::min<std::size_t>(1, pointer.size()));
  std::ranges::replace(name, '/', '.');
  return name;
}

std::string shown(const Json& flat, const std::string& pointer) {
  return flat.contains(pointer) ? dumped(flat[pointer]) : "absent";
}

}  // namespace

std::string text_of(const Manifest& m) {
  return sealed({{"schema", schema},
                 {"version", version},
                 {"step", m.step},
                 {"layout", m.layout},
                 {"config", m.config},
                 {"scalars", m.scalars},
                 {"choices", m.choices},
                 {"files", json_of(m.files)}});
}

Manifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
  const Json body = unsealed(text, path);
  try {
    if (body.at("schema") != schema || body.at("version") != version)
      refuse(path, fmt::format("it is {} version {}, this build reads {} version {}", body.at("schema").dump(),
                               body.at("version").dump(), schema, version));
    return {.step = body.at("step"),
            .layout = body.at("layout"),
            .config = body.at("config"),
            .scalars = body.at("scalars").get<std::map<std::string, double>>(),
            .choices = body.at("choices").get<std::map<std::string, std::string>>(),
            .files = files_of(body.at("files"))};
  } catch (const Json::exception& error) {
    refuse(path, error.what());
  }
}

Json layout_of(const plan::Settings& settings, const plan::Plan& plan, const std::string& optimizer,
               std::uint64_t seed) {
  Json layout{
      {"model", model_facts(settings.model)},
      {"parallel",
       {{"world_size", plan.mesh.world_size()},
        {"shard_degree", plan.mesh.shard_degree()},
        {"replicate_degree", plan.mesh.replicas}}},
      {"dtype", name_of(plan.dtype)},
      {"optimizer", {{"name", optimizer}}},
      {"train", {{"seed", seed}, {"seq_len", settings.batch.seq}, {"global_batch_size", settings.global_batch()}}},
      {"units", unit_facts(plan, model::build(settings.model, settings.batch))},
      {"partial_steps", partial_facts(settings.partial)},
      {"state_bytes", state_facts(plan)}};
  if (plan.master != plan.dtype) layout["precision"]["master"] = name_of(plan.master);
  return layout;
}

std::vector<std::string> differences(const Json& saved, const Json& here) {
  const Json a = saved.flatten(), b = here.flatten();
  std::set<std::string> names;
  for (const auto& [name, value] : a.items()) names.insert(name);
  for (const auto& [name, value] : b.items()) names.insert(name);
  std::vector<std::string> result;
  for (const std::string& name : names)
    if (!name.empty() && shown(a, name) != shown(b, name))
      result.push_back(
          fmt::format("{} is {} in the checkpoint and {} here", dotted(name), shown(a, name), shown(b, name)));
  return result;
}

}  // namespace foreshard::train
