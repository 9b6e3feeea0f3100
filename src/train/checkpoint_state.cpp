#include "train/checkpoint_state.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "train/safetensors.hpp"

namespace foreshard::train {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

constexpr std::size_t alignment = 64;  // of the first buffer in the file

bool carries_state(const plan::Buffer& buffer) {
  return buffer.persistent &&
         (buffer.memory == plan::MemoryClass::parameters || buffer.memory == plan::MemoryClass::optimizer);
}

nlohmann::ordered_json entry_of(const plan::Plan& plan, const plan::Buffer& buffer, std::int64_t begin) {
  const DType type = plan.shard_type(buffer);
  return {{"dtype", stored_type(type)},
          {"shape", {buffer.size_bytes / size_bytes(type)}},
          {"data_offsets", {begin, begin + buffer.size_bytes}}};
}

/// Length, then JSON, padded with spaces so that the first buffer is aligned.
std::string header_of(const plan::Plan& plan) {
  nlohmann::ordered_json json{{"__metadata__", {{"format", "foreshard-state"}, {"version", "1"}}}};
  std::int64_t begin = 0;
  for (const StateBuffer& state : state_of(plan)) {
    const plan::Buffer& buffer = plan.buffers[state.buffer.value];
    json[state.name] = entry_of(plan, buffer, begin);
    begin += buffer.size_bytes;
  }
  std::string text = json.dump();
  text.resize((sizeof(std::uint64_t) + text.size() + alignment - 1) / alignment * alignment - sizeof(std::uint64_t),
              ' ');
  const std::uint64_t length = text.size();
  std::string header(sizeof(length), '\0');
  std::memcpy(header.data(), &length, sizeof(length));
  return header + text;
}

}  // namespace

std::vector<StateBuffer> state_of(const plan::Plan& plan) {
  std::vector<StateBuffer> state;
  std::map<std::string, int> counts;
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const plan::Buffer& buffer = plan.buffers[i];
    if (!carries_state(buffer)) continue;
    const std::string unit = buffer.unit.valid() ? plan.unit_names[buffer.unit.value] : "run";
    const std::string kind = fmt::format("{}.{}", unit, name_of(buffer.memory));
    state.push_back({fmt::format("{}.{}", kind, counts[kind]++), {i}});
  }
  return state;
}

namespace {

std::string skipped_name(std::size_t kind) {
  return kind == 0 ? "skipped_steps" : fmt::format("skipped_steps.{}", kind);
}

}  // namespace

std::map<std::string, double> scalars_of(const UpdateState& state) {
  std::map<std::string, double> scalars{{"skipped_in_a_row", static_cast<double>(state.skipped_in_a_row)},
                                        {"loss_scale", state.scaler.scale},
                                        {"loss_scale_finite_steps", static_cast<double>(state.scaler.finite_steps)}};
  for (std::size_t kind = 0; kind < state.skipped_steps.size(); ++kind)
    scalars[skipped_name(kind)] = static_cast<double>(state.skipped_steps[kind]);
  return scalars;
}

UpdateState update_state_of(const std::map<std::string, double>& scalars) {
  const auto value = [&](const char* name, double absent) {
    const auto found = scalars.find(name);
    return found == scalars.end() ? absent : found->second;
  };
  UpdateState state{.skipped_in_a_row = static_cast<std::int64_t>(value("skipped_in_a_row", 0)),
                    .scaler = {value("loss_scale", 1), static_cast<std::int64_t>(value("loss_scale_finite_steps", 0))}};
  state.skipped_steps[0] = static_cast<std::int64_t>(value("skipped_steps", 0));
  for (std::size_t kind = 1; scalars.contains(skipped_name(kind)); ++kind)
    state.skipped_steps.push_back(static_cast<std::int64_t>(scalars.at(skipped_name(kind))));
  return state;
}

std::string state_file_name(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }

FileEntry write_state(const std::filesystem::path& path, TrainingRank& rank, const WritePoint& at) {
  DurableFile file(path);
  at("file made");
  const std::string header = header_of(rank.plan());
  file.write(std::as_bytes(std::span(header)));
  at("header written");
  for (const StateBuffer& state : state_of(rank.plan())) {
    rank.read(state.buffer, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    at(state.name + " written");
  }
  FileEntry entry = file.close();
  at("file on disk");
  return entry;
}

void read_state(const std::filesystem::path& folder, const FileEntry& entry, TrainingRank& rank) {
  VerifiedFile file(folder, entry);
  const std::string expected = header_of(rank.plan());
  std::string header(expected.size(), '\0');
  file.read(std::as_writable_bytes(std::span(header)));
  if (header != expected)
    throw InputError(ExitCode::bad_input, fmt::format("{} is not whole: its header is not the one of this run's shards",
                                                      (folder / entry.name).string()));
  for (const StateBuffer& state : state_of(rank.plan()))
    rank.change(state.buffer, [&](std::span<std::byte> bytes) { file.read(bytes); });
  file.close();
}

}  // namespace foreshard::train
