// A run that goes on from a checkpoint is the run that never stopped, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "checkpoint_run.hpp"
#include "train/checkpoint_folder.hpp"
#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() { write_tokens(folder_ / "tokens.bin"); }

  Job job() const { return {.data = folder_ / "tokens.bin", .folder = folder_ / "checkpoints"}; }
  std::filesystem::path checkpoint(std::int64_t step) const { return folder_ / "checkpoints" / checkpoint_name(step); }

  /// The message of the InputError that the job ends with.
  static std::string refusal_of(const Job& job, ExitCode code) {
    try {
      run(job);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "nothing was refused";
  }

  TemporaryFolder folder_;
};

std::vector<double> tail(const std::vector<double>& values, std::int64_t from) {
  return {values.begin() + from, values.end()};
}

struct Shape {
  plan::Mesh mesh;
  plan::Keep keep = plan::Keep::visit;
  plan::Accumulation accumulation = plan::Accumulation::reduce;
  int micro_batches = 1;
  plan::PartialSteps partial;
  bool kept_in_bf16 = false;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.mesh.replicas << "x" << shape.mesh.outer << "x" << shape.mesh.inner << ", " << shape.micro_batches
       << " micro-batches";
}

class ResumeAtEveryStep : public ResumeTest, public ::testing::WithParamInterface<Shape> {};

TEST_P(ResumeAtEveryStep, EqualsTheRunThatNeverStopped) {
  Job whole = job();
  whole.mesh = GetParam().mesh;
  whole.keep_gathered = GetParam().keep;
  whole.accumulation = GetParam().accumulation;
  whole.micro_batches = GetParam().micro_batches;
  whole.partial = GetParam().partial;
  whole.kept_in_bf16 = GetParam().kept_in_bf16;
  whole.save_after = {1, 2, 3, 4, 5, 6};
  const JobOutcome expected = run(whole);
  for (std::int64_t k = 1; k < whole.steps; ++k) {
    Job rest = whole;
    rest.save_after = {};
    rest.candidates = {checkpoint(k)};
    const JobOutcome outcome = run(rest);
    EXPECT_EQ(outcome.resumed_step, k);
    EXPECT_EQ(outcome.losses, tail(expected.losses, k)) << "resumed after step " << k;
    EXPECT_EQ(outcome.grad_norms, tail(expected.grad_norms, k)) << "resumed after step " << k;
    EXPECT_TRUE(outcome.state == expected.state) << "resumed after step " << k;
  }
}

using plan::Accumulation;
using plan::Keep;
INSTANTIATE_TEST_SUITE_P(
    All, ResumeAtEveryStep,
    ::testing::Values(Shape{{1, 1, 1}}, Shape{{1, 1, 2}}, Shape{{1, 1, 3}}, Shape{{2, 1, 1}}, Shape{{3, 1, 1}},
                      Shape{{1, 1, 1}, Keep::visit, Accumulation::reduce, 3},
                      Shape{{1, 1, 2}, Keep::visit, Accumulation::reduce, 3},
                      Shape{{1, 1, 3}, Keep::micro_batch, Accumulation::no_sync, 3},
                      Shape{{2, 1, 1}, Keep::visit, Accumulation::reduce_scatter, 2},
                      Shape{{1, 1, 2}, Keep::step, Accumulation::no_sync, 2},
                      Shape{{2, 1, 2}, Keep::visit, Accumulation::reduce_scatter, 2},
                      Shape{{1, 2, 2}, Keep::visit, Accumulation::reduce, 1},
                      Shape{{1, 1, 2}, Keep::visit, Accumulation::reduce, 2, {{"h.1"}, 3, {"h.0.*"}, 4}},
                      Shape{{1, 1, 1}, Keep::visit, Accumulation::reduce, 1, {}, true},
                      Shape{{2, 1, 2}, Keep::visit, Accumulation::reduce, 2, {}, true}));

TEST_F(ResumeTest, WithAnotherScheduleGoesOnToTheSameBits) {
  Job whole = job();
  whole.save_after = {3};
  whole.micro_batches = 2;
  const JobOutcome expected = run(whole);
  Job rest = whole;
  rest.save_after = {};
  rest.candidates = {checkpoint(3)};
  rest.keep_gathered = Keep::step;
  const JobOutcome outcome = run(rest);
  EXPECT_EQ(outcome.losses, tail(expected.losses, 3));
  EXPECT_TRUE(outcome.state == expected.state);
}

TEST_F(ResumeTest, FromTheDeviceIntoTheHostAndBackGoesOnToTheSameBits) {
  Job device = job();
  device.save_after = {3};
  const JobOutcome expected = run(device);
  Job host = device;
  host.offload = {.parameters = true, .gradients = true, .optimizer = true};
  host.save_after = {5};
  host.candidates = {checkpoint(3)};
  const JobOutcome in_host = run(host);
  EXPECT_EQ(in_host.losses, tail(expected.losses, 3));
  EXPECT_TRUE(in_host.state == expected.state);
  device.save_after = {};
  device.candidates = {checkpoint(5)};
  const JobOutcome back = run(device);
  EXPECT_EQ(back.losses, tail(expected.losses, 5));
  EXPECT_TRUE(back.state == expected.state);
}

/// Of eight ranks most hold no element of a block, and the others hold padding.
TEST_F(ResumeTest, RanksWithoutAnyElementSaveAndResumeToo) {
  Job whole = job();
  whole.mesh = {1, 1, 8};
  whole.width = whole.heads = 1;
  whole.save_after = {3};
  const JobOutcome expected = run(whole);
  Job rest = whole;
  rest.save_after = {};
  rest.candidates = {checkpoint(3)};
  const JobOutcome outcome = run(rest);
  EXPECT_EQ(outcome.resumed_step, 3);
  EXPECT_EQ(outcome.losses, tail(expected.losses, 3));
  EXPECT_TRUE(outcome.state == expected.state);
}

TEST_F(ResumeTest, SavingChangesNothing) {
  Job saving = job(), plain = job();
  saving.save_after = {2, 3};
  const JobOutcome a = run(saving), b = run(plain);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_TRUE(a.state == b.state);
}

TEST_F(ResumeTest, BeginsAnewWhereThereIsNothing) {
  const JobOutcome outcome = run(job());
  EXPECT_EQ(outcome.resumed_step, 0);
  EXPECT_EQ(outcome.losses.size(), 7u);
}

TEST_F(ResumeTest, AnotherModelIsRefusedByWhatDiffers) {
  Job small = job(), large = job();
  small.mesh = large.mesh = {1, 1, 1};
  small.save_after = {1};
  run(small);
  large.layers = 3;
  large.candidates = {checkpoint(1)};
  EXPECT_THAT(refusal_of(large, ExitCode::usage),
              AllOf(HasSubstr("step-00000001"), HasSubstr("model.layers is 2 in the checkpoint and 3 here"),
                    Not(HasSubstr("state_bytes")), HasSubstr("--checkpoint.resume=off")));
}

TEST_F(ResumeTest, ParametersKeptInAnotherTypeAreRefusedByWhatDiffers) {
  Job full = job(), half = job();
  full.save_after = {1};
  run(full);
  half.kept_in_bf16 = true;
  half.candidates = {checkpoint(1)};
  EXPECT_THAT(refusal_of(half, ExitCode::usage),
              HasSubstr("precision.master is absent in the checkpoint and \"bf16\" here"));
}

TEST_F(ResumeTest, AnotherWorldSizeIsRefusedByWhatDiffers) {
  Job two = job(), one = job();
  two.save_after = {1};
  run(two);
  one.mesh = {1, 1, 1};
  one.candidates = {checkpoint(1)};
  EXPECT_THAT(refusal_of(one, ExitCode::usage),
              AllOf(HasSubstr("parallel.world_size is 2 in the checkpoint and 1 here"),
                    HasSubstr("parallel.shard_degree is 2")));
}

}  // namespace
}  // namespace foreshard::train
