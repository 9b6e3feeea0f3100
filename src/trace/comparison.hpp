#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace foreshard::trace {

/// Predicted beside measured: of one phase, or of all ops of one kind, in a typical step (analysis.hpp).
struct TimeRow {
  std::string name;
  double predicted_s = 0, measured_s = 0;
  double predicted_count = 0, measured_count = 0;  ///< ops; 0 of a phase
  double predicted_bytes = 0,
         measured_bytes = 0;  ///< from other ranks if it is a collective, else of memory; 0 of a phase

  /// (predicted − measured) / measured; 0 if both are 0, NaN if only `measured_s` is.
  double error() const;
};

/// A number of the summaries.
struct ExactRow {
  std::string name;
  std::int64_t predicted = 0, measured = 0;
  bool must_be_equal = true;
};

struct Comparison {
  double tolerance = 0;
  std::string predicted_hash, measured_hash;
  std::optional<std::string> divergence;  ///< of the plans; then nothing below is filled
  TimeRow step;
  std::vector<TimeRow> phases;  ///< forward, backward, exposed communication, update, idle
  std::vector<TimeRow> kinds;   ///< those that occur, longest measured first
  std::vector<ExactRow> exact;

  /// What is wrong, one sentence each; empty if the prediction holds: equal plans, step time within tolerance, and
  /// every number that must be equal.
  std::vector<std::string> faults() const;
};

/// Lays a prediction beside a measurement. The first `skip_steps` steps of each do not count, if there are more.
/// Throws InputError (bad_input) for a trace without steps, or one that was not closed and so lacks its totals.
Comparison compare(const Trace& measured, const Trace& predicted, double tolerance, int skip_steps);

/// For people: tables and a verdict.
std::string text_of(const Comparison& comparison);
/// For programs: times in seconds, errors as fractions, null where there is none.
nlohmann::ordered_json json_of(const Comparison& comparison);

}  // namespace foreshard::trace
