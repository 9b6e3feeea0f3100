// Against torch.amp.GradScaler's documented algorithm, step by step.
#include "train/grad_scaler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace foreshard::train {
namespace {

TEST(GradScaler, BacksOffAtOnceAndGrowsAfterAnInterval) {
  GradScaler scaler({.dynamic = true, .scale = 65536, .interval = 3});
  struct Case {
    bool finite;
    double scale;
  };
  const Case cases[] = {{true, 65536},  {true, 65536},  {false, 32768}, {true, 32768}, {true, 32768}, {true, 65536},
                        {false, 32768}, {false, 16384}, {true, 16384},  {true, 16384}, {true, 32768}, {true, 32768}};
  for (const auto& [finite, scale] : cases) {
    scaler.update(finite);
    EXPECT_EQ(scaler.scale(), scale);
  }
}

TEST(GradScaler, DoesNotGrowBeyondFloat) {
  GradScaler scaler({.dynamic = true, .scale = 0x1p126, .interval = 1});
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 0x1p127);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(GradScaler, AFixedScaleStays) {
  GradScaler scaler({.scale = 1024});
  for (const bool finite : {true, false, true}) scaler.update(finite);
  EXPECT_EQ(scaler.scale(), 1024);
}

TEST(GradScaler, GoesOnFromItsState) {
  const GradScaler::Settings settings{.dynamic = true, .scale = 8, .interval = 3};
  GradScaler whole(settings), resumed(settings);
  whole.update(false);
  whole.update(true);
  whole.update(true);
  resumed.restore(whole.state());
  whole.update(true);
  resumed.update(true);
  EXPECT_EQ(resumed.state(), whole.state());
  EXPECT_EQ(resumed.scale(), 8);
}

TEST(LossScale, IsANumberOrDynamic) {
  EXPECT_EQ(parse_loss_scale("k", "1").scale, 1);
  EXPECT_FALSE(parse_loss_scale("k", "512").dynamic);
  EXPECT_EQ(parse_loss_scale("k", "dynamic").scale, 65536);
  EXPECT_TRUE(parse_loss_scale("k", "dynamic").dynamic);
  for (const char* text : {"", "0", "-2", "big", "2x", "inf", "nan", "1e-40", "1e39", "1e38"}) {
    try {
      parse_loss_scale("train.loss_scale", text);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), testing::HasSubstr("train.loss_scale = " + std::string(text)));
    }
  }
}

}  // namespace
}  // namespace foreshard::train
