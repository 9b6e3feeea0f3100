#include "train/grad_scaler.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/error.hpp"

namespace foreshard::train {

void GradScaler::update(bool finite) {
  if (!settings_.dynamic) return;
  if (!finite) {
    state_ = {state_.scale * settings_.backoff, 0};
  } else if (++state_.finite_steps == settings_.interval) {
    const double grown = state_.scale * settings_.growth;
    state_ = {std::isfinite(static_cast<float>(grown)) ? grown : state_.scale, 0};
  }
}

namespace {

/// The scale and what undoes it lose no bits in float.
bool usable(double scale) {
  return scale > 0 && std::isnormal(static_cast<float>(scale)) && std::isnormal(static_cast<float>(1 / scale));
}

}  // namespace

GradScaler::Settings parse_loss_scale(const std::string& key, const std::string& text) {
  if (text == "dynamic") return {.dynamic = true, .scale = 65536};
  double scale = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, scale);
  if (error == std::errc() && parsed == end && usable(scale)) return {.scale = scale};
  throw InputError(ExitCode::usage, fmt::format("{} = {}: expected `dynamic` or a number above 0 of which a float "
                                                "holds the inverse too, for example 1 or 1024",
                                                key, text));
}

}  // namespace foreshard::train
