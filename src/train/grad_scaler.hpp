#pragma once
#include <cstdint>
#include <string>

namespace foreshard::train {

/// The factor that keeps small gradients from vanishing in half precision: the loss is multiplied by it before
/// backward, the gradient divided by it before the update. A dynamic scale grows after `interval` finite steps in a row
/// and backs off at each step whose gradient overflowed, which is skipped; the algorithm and the defaults of
/// torch.amp.GradScaler. All ranks see the same verdicts, so their scales stay equal.
class GradScaler {
 public:
  struct Settings {
    bool dynamic = false;
    double scale = 1;  ///< at first; for good if not dynamic
    double growth = 2, backoff = 0.5;
    std::int64_t interval = 2000;
  };
  /// What a checkpoint keeps.
  struct State {
    double scale = 1;
    std::int64_t finite_steps = 0;  ///< since the scale last changed
    friend bool operator==(const State&, const State&) = default;
  };

  GradScaler() = default;
  explicit GradScaler(const Settings& settings) : settings_(settings), state_{settings.scale} {}

  bool dynamic() const { return settings_.dynamic; }
  double scale() const { return state_.scale; }
  /// After a step: whether its gradient was finite on all ranks. A scale that would overflow fp32 does not grow.
  void update(bool finite);

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  Settings settings_;
  State state_;
};

/// "dynamic" (from 2^16) or a fixed factor above 0. Throws InputError(usage) that names `key`.
GradScaler::Settings parse_loss_scale(const std::string& key, const std::string& text);

}  // namespace foreshard::train
