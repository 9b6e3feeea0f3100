#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "trace/analysis.hpp"
#include "trace/reader.hpp"

namespace foreshard::trace {

/// What `foreshard-trace info` says of a trace.
struct Overview {
  std::set<std::int32_t> steps;
  std::set<std::uint32_t> ranks;  ///< with events
  StepTotals typical;             ///< the first step apart
  double step_time_s = 0;         ///< NaN without steps
  Collectives collectives;        ///< counted, or the plan's if the file was not closed
  BytesByClass peak_bytes{};      ///< live bytes at the largest moment of /memory
  std::int64_t peak_total_bytes = 0;
};

Overview overview_of(const Trace& trace);

/// For people.
std::string text_of(const Trace& trace, const Overview& overview);
/// For programs: SI units, named in the keys.
nlohmann::ordered_json json_of(const Trace& trace, const Overview& overview);

}  // namespace foreshard::trace
