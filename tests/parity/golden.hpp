#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "local_run.hpp"

/// Trainings by PyTorch that tests/golden/make_*_golden.py wrote down, and how to repeat them.
namespace foreshard::parity {

/// The cases of a file of tests/golden.
nlohmann::json golden_cases(const std::string& file);

/// A case on so many ranks: reference kernels in double, or the cpu's in float.
RunSetup golden_setup(const nlohmann::json& golden, const model::Config& model, int world, bool reference);

/// Losses to `tolerance` of themselves, norms and final sums of squares to ten times that.
void expect_golden(const nlohmann::json& golden, const Outcome& outcome, double tolerance);

/// A case, on as many ranks as divide its batch.
struct Variant {
  int index, ranks;
};

std::string name_of(const nlohmann::json& cases, const Variant& variant);

}  // namespace foreshard::parity
