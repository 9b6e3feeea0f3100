#include "sim/allocator/replay_command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/error.hpp"
#include "base/run_main.hpp"
#include "base/units.hpp"
#include "sim/allocator/peak.hpp"

namespace foreshard::sim::allocator {
namespace {

Config keys() {
  Config config("foreshard-plan replay-memory",
                "Replays a list of memory events through PyTorch's CUDA caching allocator and explains the peak.");
  config.example("foreshard-plan replay-memory events.csv --device=80GiB --settings=expandable_segments:True");
  config.add_arguments("FILE.csv", "columns event, block, bytes, stream, time_ns, until_ns, class, unit", 1, 1);
  config.add("device", "80GiB", "memory of the device, as the driver reports it");
  config.add("outside", "0", "of it not through the allocator: context, communicators");
  config.add("settings", "", "as in PYTORCH_CUDA_ALLOC_CONF");
  config.add("samples", 20, "points of the timeline that are shown", {.min = 1, .max = 1 << 20});
  config.add("json", false, "print one JSON object");
  return config;
}

/// More than any device has; sums of sizes stay within 64 bits.
constexpr Bytes largest = Bytes{1} << 50;

Bytes size_of(const Config& config, const char* key) {
  const auto text = config.get<std::string>(key);
  if (const auto bytes = parse_size(text); bytes && *bytes <= largest) return *bytes;
  throw InputError(ExitCode::usage,
                   fmt::format("--{}={} is not a size of at most 1 PiB\n  expected: for example 80GiB", key, text));
}

nlohmann::json gauge_json(const Gauge& gauge) { return {{"current", gauge.current}, {"peak", gauge.peak}}; }

nlohmann::json to_json(const Replay& replay, const std::vector<Sample>& timeline, const PeakReport& report) {
  const Statistics& s = replay.allocator().statistics();
  nlohmann::json samples = nlohmann::json::array();
  for (const Sample& sample : timeline)
    samples.push_back({sample.at, sample.allocated, sample.active, sample.reserved});
  return {{"requested_bytes", gauge_json(s.requested)},
          {"allocated_bytes", gauge_json(s.allocated)},
          {"active_bytes", gauge_json(s.active)},
          {"reserved_bytes", gauge_json(s.reserved)},
          {"inactive_split_bytes", gauge_json(s.inactive_split)},
          {"alloc_retries", s.retries},
          {"ooms", s.ooms},
          {"device_allocs", s.device_allocs},
          {"device_frees", s.device_frees},
          {"syncs", s.syncs},
          {"stalled_ns", replay.stalled()},
          {"timeline_columns", {"at_ns", "allocated", "active", "reserved"}},
          {"timeline", samples},
          {"peak", to_json(report)}};
}

void print_text(const Replay& replay, const std::vector<Sample>& timeline, const PeakReport& report) {
  const Statistics& s = replay.allocator().statistics();
  fmt::print("{:>12}{:>14}{:>14}{:>14}\n", "time", "allocated", "active", "reserved");
  for (const Sample& sample : timeline)
    fmt::print("{:>12}{:>14}{:>14}{:>14}\n", duration_text(static_cast<double>(sample.at) * 1e-9),
               bytes_text(sample.allocated), bytes_text(sample.active), bytes_text(sample.reserved));
  fmt::print("retries {}, segments of the driver: {} taken, {} given back; host stalled {}\n\n", s.retries,
             s.device_allocs, s.device_frees, duration_text(static_cast<double>(replay.stalled()) * 1e-9));
  fmt::print("{}", report.text());
  if (replay.failure()) fmt::print("{}", replay.failure()->text());
}

}  // namespace

int replay_memory(int argc, const char* const* argv) {
  Config config = keys();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  ReplayOptions options;
  options.settings = parse_settings(config.get<std::string>("settings"));
  options.device_bytes = size_of(config, "device"), options.outside_bytes = size_of(config, "outside");
  const EventList list = read_events(config.arguments().front());
  Replay replay(list, options);
  replay.run();
  const auto timeline = coarsened(timeline_of(list, options), config.get<std::size_t>("samples"));
  const PeakReport report = explain_peak(list, options);
  if (config.get<bool>("json"))
    fmt::print("{}\n", to_json(replay, timeline, report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    print_text(replay, timeline, report);
  return static_cast<int>(replay.failure() ? ExitCode::infeasible : ExitCode::done);
}

}  // namespace foreshard::sim::allocator
