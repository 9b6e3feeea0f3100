// From the user's keys to a run of PyTorch, its report and its trace.
#include "sim/runtimes/torch_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "base/error.hpp"
#include "plan/build.hpp"
#include "sim/runtimes/foreign_keys.hpp"
#include "sim/runtimes/torch_report.hpp"
#include "trace/check.hpp"

namespace foreshard::sim::torch {
namespace {

using ::testing::HasSubstr;

/// The keys of foreshard-plan that matter here, as given.
TorchJob job_of(std::vector<const char*> arguments) {
  Config config("test");
  plan::add_plan_keys(config);
  config.add("parallel.world_size", 1, "");
  config.add("runtime.profile", "pytorch-fsdp2", "");
  add_torch_keys(config);
  arguments.insert(arguments.begin(), "test");
  config.parse(static_cast<int>(arguments.size()), arguments.data());
  return read_torch_job(config, plan::read_settings(config, config.get<int>("parallel.world_size")));
}

TEST(TorchJob, IsTheModelOfThePreset) {
  EXPECT_EQ(job_of({"--model.preset=gpt2", "--train.seq_len=8"}).parameters, 124'439'808);
  const TorchJob llama = job_of({"--model.preset=llama3-8b", "--train.seq_len=8"});
  EXPECT_EQ(llama.parameters, 8'030'261'248);
  EXPECT_EQ(std::get<Decoder>(llama.run.model).kv_heads, 8);
  EXPECT_FALSE(std::get<Decoder>(llama.run.model).tied);
}

TEST(TorchJob, SaysWhereAWindowCostsAMask) {
  const auto notes = [](std::string_view seq_len, std::string_view attention) {
    const std::string length = "--train.seq_len=" + std::string(seq_len);
    const std::string kernel = "--torch.attn_implementation=" + std::string(attention);
    std::string all;
    for (const std::string& note : job_of({"--model.preset=mistral-7b", length.c_str(), kernel.c_str()}).notes)
      all += note + "\n";
    return all;
  };
  EXPECT_THAT(notes("8192", "sdpa"), HasSubstr("a mask of 8192 x 8192 for the sliding window of 4096 tokens"));
  EXPECT_THAT(notes("8192", "sdpa"), HasSubstr("set torch.attn_implementation=flash_attention_2"));
  EXPECT_EQ(notes("4095", "sdpa"), "");
  EXPECT_EQ(notes("8192", "flash_attention_2"), "");
}

TEST(TorchJob, ParametersKeptInBf16AreRefused) {
  try {
    job_of({"--model.preset=gpt2", "--train.seq_len=8", "--precision.master=bf16", "--precision.param=bf16"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("precision.master = bf16: parameters kept in bf16 are not modelled"));
  }
}

TEST(TorchJob, FlagsThatTheRuntimeDoesNotHaveAreRefused) {
  const auto refusal = [](std::string_view profile, const char* flag) -> std::string {
    Config config("test");
    add_torch_keys(config);
    const std::array arguments{"test", flag};
    config.parse(2, arguments.data());
    try {
      refuse_foreign_keys(config, std::array{profile});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* own : {"", "foreshard-cuda"})
    EXPECT_THAT(refusal(own, "--torch.release=2.4"), HasSubstr("torch.release = 2.4"));
  EXPECT_THAT(refusal("foreshard-cuda", "--deepspeed.sub_group_size=1e6"), HasSubstr("to deepspeed-zero1"));
  EXPECT_THAT(refusal("pytorch-fsdp2", "--deepspeed.overlap_comm=true"), HasSubstr("deepspeed.overlap_comm = true"));
  EXPECT_THAT(refusal("pytorch-fsdp1", "--torch.bucket_cap_mb=5"), HasSubstr("to pytorch-ddp"));
  EXPECT_THAT(refusal("deepspeed-zero3", "--torch.bucket_cap_mb=5"), HasSubstr("to pytorch-ddp"));
  EXPECT_EQ(refusal("pytorch-ddp", "--torch.bucket_cap_mb=5"), "");
  EXPECT_EQ(refusal("deepspeed-zero1", "--deepspeed.overlap_comm=true"), "");
  for (const char* torchs : {"pytorch-ddp", "pytorch-fsdp2", "deepspeed-zero2"})
    EXPECT_EQ(refusal(torchs, "--torch.release=2.4"), "");
}

TEST(TorchJob, CountsFlopsAsOurOwnPlansDo) {
  for (const char* preset : {"--model.preset=gpt2", "--model.preset=byte-llama-tiny"}) {
    const TorchJob job = job_of({preset, "--train.seq_len=64", "--train.local_batch_size=2"});
    Config config("test");
    plan::add_plan_keys(config);
    const std::array arguments{"test", preset, "--train.seq_len=64", "--train.local_batch_size=2"};
    config.parse(4, arguments.data());
    const plan::Settings settings = plan::read_settings(config, 1);
    const FlopBasis ours =
        sim::flop_basis(plan::build_plan(model::build(settings.model, settings.batch), {}, settings.schedule));
    const FlopBasis torchs = flop_basis(job.run);
    for (const FlopConvention convention : all_flop_conventions())
      EXPECT_DOUBLE_EQ(flops_per_token(torchs, convention), flops_per_token(ours, convention)) << name_of(convention);
    EXPECT_EQ(torchs.tokens, ours.tokens);
  }
}

TEST(TorchJob, ReadsStrategyPrefetchAndMicroBatches) {
  const TorchJob hybrid =
      job_of({"--runtime.profile=pytorch-fsdp1", "--parallel.world_size=64", "--parallel.strategy=hybrid_shard_grad_op",
              "--parallel.shard_degree=8", "--parallel.prefetch=none", "--parallel.limit=unlimited",
              "--parallel.forward_prefetch=1", "--train.global_batch_size=256", "--parallel.accumulation=no_sync",
              "--precision.param=bf16"});
  EXPECT_EQ(hybrid.run.wrap.world, 8);
  EXPECT_EQ(hybrid.run.wrap.replicas, 8);
  EXPECT_FALSE(hybrid.run.wrap.reshard);
  EXPECT_EQ(hybrid.run.wrap.backward_prefetch, BackwardPrefetch::none);
  EXPECT_FALSE(hybrid.run.wrap.limits_gathers);
  EXPECT_TRUE(hybrid.run.wrap.forward_prefetch);
  EXPECT_EQ(hybrid.run.micro_batches, 4);
  EXPECT_TRUE(hybrid.run.no_sync);
  EXPECT_EQ(hybrid.run.wrap.compute, DType::bf16);
  EXPECT_EQ(job_of({"--parallel.world_size=4"}).run.wrap.prefetch_depth, 0);
  EXPECT_EQ(job_of({"--parallel.world_size=4", "--units.policy=blocks:3"}).run.wrap.blocks_per_unit, 3);
  EXPECT_EQ(job_of({"--parallel.world_size=4", "--units.policy=none"}).run.wrap.blocks_per_unit, 0);
  EXPECT_EQ(job_of({"--parallel.world_size=4", "--parallel.prefetch_depth=3"}).run.wrap.prefetch_depth, 3);
}

TEST(TorchJob, ReadsRuntimesThatWrapNoUnits) {
  const TorchJob ddp = job_of({"--runtime.profile=pytorch-ddp", "--parallel.world_size=16", "--precision.param=bf16",
                               "--torch.bucket_cap_mb=50", "--torch.gradient_as_bucket_view=true"});
  EXPECT_EQ(ddp.run.runtime, Runtime::ddp);
  EXPECT_EQ(ddp.run.wrap.world, 1);
  EXPECT_EQ(ddp.run.wrap.replicas, 16);
  EXPECT_EQ(ddp.run.wrap.bucket_bytes, 50 << 20);
  EXPECT_TRUE(ddp.run.wrap.gradients_are_views);
  EXPECT_EQ(ddp.run.wrap.reduce, DType::f32);
  const TorchJob zero1 = job_of({"--runtime.profile=deepspeed-zero1", "--parallel.world_size=16"});
  EXPECT_FALSE(zero1.run.wrap.zero.overlaps);
  const TorchJob zero3 = job_of({"--runtime.profile=deepspeed-zero3", "--parallel.world_size=16",
                                 "--precision.param=fp16", "--deepspeed.reduce_bucket_size=2e8"});
  EXPECT_EQ(zero3.run.wrap.world, 16);
  EXPECT_EQ(zero3.run.wrap.reduce, DType::f16);
  EXPECT_EQ(zero3.run.wrap.zero.reduce_bucket, 200'000'000);
  EXPECT_EQ(zero3.run.wrap.zero.stage, 3);
  EXPECT_TRUE(zero3.run.wrap.zero.overlaps);
  EXPECT_EQ(zero3.run.loop, UpdateLoop::fused);
}

std::string refusal_of(const std::vector<const char*>& arguments) {
  try {
    job_of(arguments);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TorchJob, RefusesByNameWhatFsdpHasNot) {
  for (const char* key : {"--parallel.limit=4", "--offload.optimizer=true", "--units.policy=size:1000",
                          "--activation_checkpoint.mode=selective", "--optimizer.name=lion",
                          "--parallel.strategy=zero1", "--parallel.prefetch=none", "--torch.nccl=2"}) {
    const std::string name = std::string(key).substr(2, std::string(key).find('=') - 2);
    EXPECT_NE(refusal_of({"--parallel.world_size=4", key}).find(name), std::string::npos) << key;
  }
  for (const char* key : {"--parallel.prefetch_depth=2", "--parallel.reduce_limit=3"})
    EXPECT_NE(refusal_of({"--runtime.profile=pytorch-fsdp1", key}).find("FSDP1"), std::string::npos) << key;
  EXPECT_NE(refusal_of({"--runtime.profile=pytorch-ddp", "--torch.saving=full"}).find("torch.saving"),
            std::string::npos);
}

TEST(TorchJob, RefusesLoraWhereItsMemoryIsNotKnown) {
  const auto refusal = [](const char* profile, const char* key) {
    return refusal_of(
        {profile, "--parallel.world_size=4", "--model.preset=byte-llama-tiny", "--model.lora_rank=4", key});
  };
  EXPECT_EQ(refusal("--runtime.profile=pytorch-fsdp1", "--precision.param=bf16"), "");
  EXPECT_EQ(refusal("--runtime.profile=pytorch-ddp", "--torch.bucket_cap_mb=5"), "");
  EXPECT_THAT(refusal("--runtime.profile=pytorch-ddp", "--precision.param=bf16"), HasSubstr("autocast"));
  EXPECT_THAT(refusal("--runtime.profile=deepspeed-zero3", "--torch.tf32"), HasSubstr("DeepSpeed"));
  EXPECT_THAT(refusal("--runtime.profile=pytorch-fsdp2", "--torch.saving=full"), HasSubstr("torch.saving"));
  EXPECT_THAT(refusal("--runtime.profile=pytorch-fsdp1", "--torch.release=2.0"), HasSubstr("from 2.1 on"));
  EXPECT_EQ(refusal("--runtime.profile=pytorch-fsdp2", "--torch.release=2.4"), "");
}

TEST(TorchJob, ReadsHowItIsLoadedSavedAndReduced) {
  const TorchJob job = job_of({"--parallel.world_size=4", "--parallel.reduce_limit=3", "--torch.loading=whole-half",
                               "--torch.saving=full-to-host", "--torch.unshard_async", "--torch.release=2.4"});
  EXPECT_EQ(job.run.wrap.reductions, 3);
  EXPECT_TRUE(job.run.wrap.async_gathers && job.run.traits.early_fsdp2);
  EXPECT_EQ(job.loading, allocator::Loading::whole);
  EXPECT_EQ(job.load_type, DType::bf16);
  EXPECT_EQ(job.saving, allocator::Saving::full_to_host);
  const TorchJob usual = job_of({"--parallel.world_size=4"});
  EXPECT_EQ(usual.run.wrap.reductions, 1);
  EXPECT_FALSE(usual.run.wrap.async_gathers || usual.run.traits.early_fsdp2 || usual.saving);
  EXPECT_EQ(usual.loading, allocator::Loading::sharded);
}

TEST(TorchJob, RefusesShardsWhereThereIsNoChoiceOfThem) {
  for (const char* profile : {"--runtime.profile=pytorch-ddp", "--runtime.profile=deepspeed-zero2"})
    for (const char* key : {"--parallel.strategy=shard_grad_op", "--parallel.prefetch=none",
                            "--parallel.limit=unlimited", "--parallel.reshard_after_forward=never"}) {
      const std::string name = std::string(key).substr(2, std::string(key).find('=') - 2);
      EXPECT_NE(refusal_of({profile, "--parallel.world_size=4", key}).find(name), std::string::npos) << key;
    }
}

class TorchTrace : public testing::TestWithParam<const char*> {};

TEST_P(TorchTrace, AgreesWithItself) {
  const std::string profile = std::string("--runtime.profile=") + GetParam();
  const TorchJob job = job_of({profile.c_str(), "--model.preset=byte-llama-tiny", "--parallel.world_size=16",
                               "--train.global_batch_size=32", "--precision.param=bf16"});
  const TorchPrediction prediction = predict(job, read_cluster("dgx-a100"));
  const auto path = std::filesystem::temp_directory_path() / "foreshard_torch_trace_test.h5";
  write_trace(path.string(), {.run_id = "test"}, prediction, job, true);
  const trace::Trace trace = trace::read(path.string());
  for (const trace::Finding& finding : trace::check(trace))
    EXPECT_EQ(finding.violations, 0u) << finding.check << ' ' << finding.first_violation;
  EXPECT_EQ(trace.rows.size(), prediction.ran.size());
  EXPECT_EQ(trace.steps.at(0).tokens, job.run.batch.tokens() * 2);
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(, TorchTrace,
                         testing::Values("pytorch-ddp", "pytorch-fsdp1", "pytorch-fsdp2", "deepspeed-zero1",
                                         "deepspeed-zero2", "deepspeed-zero3"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace foreshard::sim::torch
