#pragma once
#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "local_run.hpp"

namespace foreshard::parity {

/// Losses and norms to `tolerance` of themselves, tensors to `tolerance` of their largest element.
inline void expect_close(const Outcome& a, const Outcome& b, double tolerance, const std::string& what = "") {
  ASSERT_EQ(a.losses.size(), b.losses.size()) << what;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], tolerance * a.losses[i]) << what << " step " << i + 1;
    EXPECT_NEAR(a.grad_norms[i], b.grad_norms[i], tolerance * a.grad_norms[i]) << what << " step " << i + 1;
  }
  EXPECT_LE(distance(a.first_gradients, b.first_gradients), tolerance) << what;
  EXPECT_LE(distance(a.weights, b.weights), tolerance) << what;
}

inline void expect_same_bits(const Outcome& a, const Outcome& b, const std::string& what = "") {
  EXPECT_EQ(a.losses, b.losses) << what;
  EXPECT_EQ(a.grad_norms, b.grad_norms) << what;
  EXPECT_EQ(a.first_gradients, b.first_gradients) << what;
  EXPECT_EQ(a.weights, b.weights) << what;
}

/// At the end of each step, ranks have touched as many bytes of their arena as the plan has.
inline void expect_the_planned_arena(RunSetup setup) {
  std::mutex mutex;
  setup.after_step = [&](const StepEnd& end) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(end.rank.engine().arena(plan::Space::device).high_water_bytes(), end.rank.plan().arena_bytes)
        << "step " << end.step;
  };
  run(setup);
}

}  // namespace foreshard::parity
