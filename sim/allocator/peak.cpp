#include "sim/allocator/peak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "sim/allocator/knobs.hpp"

namespace foreshard::sim::allocator {
namespace {

Moment moment_of(const EventList& list, const Replay& replay, const Event& event) {
  const int phase = replay.phase();
  return {replay.sample().at, replay.events_done() - 1, phase < 0 ? "" : list.phases[std::size_t(phase)], event.label,
          event.bytes};
}

/// Events up to the peak of active bytes or the failure, the one that makes it included.
std::size_t events_to_peak(const EventList& list, const ReplayOptions& options, PeakReport& report) {
  Replay replay(list, options);
  Bytes peak = 0;
  std::size_t events = 0;
  while (!replay.done()) {
    const Event& event = list.events[replay.events_done()];
    replay.step();
    if (event.kind == Event::Kind::allocate && event.bytes > report.largest_request.bytes)
      report.largest_request = moment_of(list, replay, event);
    const Bytes active = replay.allocator().statistics().active.peak;
    if (active > peak || replay.failure()) peak = active, events = replay.events_done();
  }
  report.reserved_peak = replay.allocator().statistics().reserved.peak;
  report.out_of_memory = replay.failure().has_value();
  return events;
}

void note_blocks(const Replay& replay, PeakReport& report) {
  std::map<Label, Bytes> by_label;
  for (const Block* block : replay.live()) {
    by_label[block->label] += block->size;
    report.by_class[std::size_t(class_of(block->label))] += block->size;
    report.rounding += block->size - block->requested;
  }
  for (const auto& [label, bytes] : by_label) report.holdings.push_back({label, bytes});
  std::ranges::stable_sort(report.holdings, std::ranges::greater{}, &Holding::bytes);
}

void note_statistics(const CachingAllocator& allocator, PeakReport& report) {
  const Statistics& now = allocator.statistics();
  report.reserved = now.reserved.current, report.active = now.active.current;
  report.allocated = now.allocated.current, report.requested = now.requested.current;
  report.waiting = report.active - report.allocated;
  report.inactive_split = now.inactive_split.current;
  report.cached = report.reserved - report.active - report.inactive_split;
  report.outside = allocator.outside();
}

}  // namespace

PeakReport explain_peak(const EventList& list, const ReplayOptions& options) {
  PeakReport report;
  report.device = options.device_bytes;
  const std::size_t events = events_to_peak(list, options, report);
  Replay replay(list, options);
  while (replay.events_done() < events) replay.step();
  if (events > 0) report.moment = moment_of(list, replay, list.events[events - 1]);
  note_statistics(replay.allocator(), report);
  note_blocks(replay, report);
  report.knobs = knobs_of(list, options, report);
  return report;
}

std::string PeakReport::text() const {
  std::string text = fmt::format(
      "{} {} ({}), {} asked for {}\n"
      "  reserved {}, its peak {} of {}, {} outside the allocator; active {}, allocated {}\n",
      out_of_memory ? "out of memory at" : "peak at", duration_text(static_cast<double>(moment.at) * 1e-9),
      moment.phase.empty() ? "no phase named" : moment.phase, bytes_text(moment.bytes), text_of(moment.label),
      bytes_text(reserved), bytes_text(reserved_peak), bytes_text(device), bytes_text(outside), bytes_text(active),
      bytes_text(allocated));
  for (std::size_t i = 0; i < by_class.size(); ++i)
    if (by_class[i] > 0) text += fmt::format("    {:<28}{:>12}\n", memory_class_names[i], bytes_text(by_class[i]));
  for (const auto& [name, bytes] :
       {std::pair{"held for other streams", waiting}, {"free in segments in use", inactive_split}, {"cached", cached}})
    if (bytes > 0) text += fmt::format("    {:<28}{:>12}\n", name, bytes_text(bytes));
  text += fmt::format("  rounding {}, fragmentation {:.1f} %; largest single request {} for {}\n", bytes_text(rounding),
                      100 * fragmentation(), bytes_text(largest_request.bytes), text_of(largest_request.label));
  for (std::size_t i = 0; i < std::min<std::size_t>(holdings.size(), 5); ++i)
    text += fmt::format("  holds {} of {}\n", bytes_text(holdings[i].bytes), text_of(holdings[i].label));
  for (const Knob& knob : knobs)
    text += fmt::format("  {} saves {}{}\n", knob.name, knob.exact ? "" : "up to ", bytes_text(knob.saves));
  return text;
}

nlohmann::json to_json(const PeakReport& report) {
  const auto moment_json = [](const Moment& moment) {
    return nlohmann::json{{"at_ns", moment.at},
                          {"event", moment.event},
                          {"phase", moment.phase},
                          {"class", memory_class_names[std::size_t(class_of(moment.label))]},
                          {"unit", unit_of(moment.label)},
                          {"bytes", moment.bytes}};
  };
  nlohmann::json json{{"out_of_memory", report.out_of_memory},
                      {"moment", moment_json(report.moment)},
                      {"largest_request", moment_json(report.largest_request)},
                      {"device_bytes", report.device},
                      {"outside_bytes", report.outside},
                      {"reserved_bytes", report.reserved},
                      {"reserved_peak_bytes", report.reserved_peak},
                      {"active_bytes", report.active},
                      {"allocated_bytes", report.allocated},
                      {"requested_bytes", report.requested},
                      {"waiting_bytes", report.waiting},
                      {"inactive_split_bytes", report.inactive_split},
                      {"cached_bytes", report.cached},
                      {"rounding_bytes", report.rounding},
                      {"fragmentation", report.fragmentation()}};
  for (std::size_t i = 0; i < report.by_class.size(); ++i)
    json["by_class"][std::string(memory_class_names[i])] = report.by_class[i];
  json["knobs"] = nlohmann::json::array();
  for (const Knob& knob : report.knobs)
    json["knobs"].push_back({{"name", knob.name}, {"saves_bytes", knob.saves}, {"exact", knob.exact}});
  return json;
}

}  // namespace foreshard::sim::allocator
