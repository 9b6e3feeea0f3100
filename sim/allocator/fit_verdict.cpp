#include "sim/allocator/fit_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::sim::allocator {
namespace {

PhaseVerdict verdict_of(const PhaseMemory& memory, Bytes device, Bytes outside, double margin) {
  const Bytes there_is = device - outside, room = there_is - memory.reserved;
  if (memory.failure || memory.allocated > there_is)
    return {memory, Fit::no, std::min(room, there_is - memory.allocated)};
  if (memory.retries > 0 || room < 0) return {memory, Fit::retries, room};
  return {memory, static_cast<double>(room) < margin * static_cast<double>(device) ? Fit::tight : Fit::fits, room};
}

std::string largest_part(const BytesByClass& bytes) {
  const auto largest = std::ranges::max_element(bytes);
  return fmt::format("{} {}", memory_class_names[std::size_t(largest - bytes.begin())], bytes_text(*largest));
}

std::string reason(const PhaseVerdict& verdict) {
  const PhaseMemory& memory = verdict.memory;
  if (memory.failure && memory.failure->rounded == 0) return "ran out of memory";
  if (memory.failure && memory.failure->is_fragmentation())
    return fmt::format("fragmentation: {} in one piece is not there", bytes_text(memory.failure->segment));
  if (verdict.fit == Fit::no)
    return fmt::format("{} missing; the largest part is {}", bytes_text(std::max<Bytes>(0, -verdict.room)),
                       largest_part(memory.by_class));
  if (verdict.fit == Fit::retries)
    return memory.retries > 0 ? fmt::format("{} retries, each stops the host until the device is idle", memory.retries)
                              : "streams keep more segments than there is room for";
  return fmt::format("{} left", bytes_text(verdict.room));
}

}  // namespace

FitVerdict judge(std::span<const PhaseMemory> phases, Bytes device, Bytes outside, double margin) {
  FitVerdict verdict{device, outside, {}};
  for (const PhaseMemory& memory : phases) verdict.phases.push_back(verdict_of(memory, device, outside, margin));
  return verdict;
}

const PhaseVerdict& FitVerdict::decisive() const {
  FORESHARD_EXPECT(!phases.empty(), "a verdict is about some phase");
  return *std::ranges::max_element(phases, {}, &PhaseVerdict::fit);
}

Fit FitVerdict::fit() const { return phases.empty() ? Fit::fits : decisive().fit; }

std::string FitVerdict::text() const {
  std::string text = fmt::format("{} of {}, {} of it outside the allocator\n", fit_names[std::size_t(fit())],
                                 bytes_text(device), bytes_text(outside));
  return text + phases_text();
}

std::string FitVerdict::phases_text() const {
  std::string text;
  for (const PhaseVerdict& phase : phases) {
    text += fmt::format("  {:<16} {:<18}", run_phase_names[std::size_t(phase.memory.phase)],
                        fit_names[std::size_t(phase.fit)]);
    if (phase.memory.reserved > 0)
      text += fmt::format(" allocated {:>10}, reserved {}{:>10};", bytes_text(phase.memory.allocated),
                          phase.memory.simulated ? "" : "at least ", bytes_text(phase.memory.reserved));
    text += fmt::format(" {}\n", reason(phase));
  }
  return text;
}

nlohmann::json to_json(const FitVerdict& verdict) {
  nlohmann::json json{{"fit", fit_names[std::size_t(verdict.fit())]},
                      {"device_bytes", verdict.device},
                      {"outside_bytes", verdict.outside},
                      {"phases", nlohmann::json::array()}};
  for (const PhaseVerdict& phase : verdict.phases)
    json["phases"].push_back({{"phase", run_phase_names[std::size_t(phase.memory.phase)]},
                              {"fit", fit_names[std::size_t(phase.fit)]},
                              {"allocated_bytes", phase.memory.allocated},
                              {"reserved_bytes", phase.memory.reserved},
                              {"simulated", phase.memory.simulated},
                              {"retries", phase.memory.retries},
                              {"room_bytes", phase.room},
                              {"reason", reason(phase)}});
  return json;
}

}  // namespace foreshard::sim::allocator
