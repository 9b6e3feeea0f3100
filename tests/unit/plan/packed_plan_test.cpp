// Plans whose frozen weights are packed in four bits: what they take in shards, on the wire and in the arena, by closed
// formulas of the values alone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "model/llama.hpp"
#include "plan/query.hpp"
#include "timing_oracle.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

using model::Packing;

constexpr std::int64_t layers = 3, width = 64, keys = 32, ffn = 176, rank = 2;
constexpr std::array<std::int64_t, 7> matrices{width * width, width* keys, width* keys, width* width,
                                               width* ffn,    width* ffn,  width* ffn};
constexpr std::int64_t values = 2 * width * width + 2 * width * keys + 3 * width * ffn;  // of a block's projections
constexpr std::int64_t adapters = rank * (width + width) + rank * (width + keys), norms = 2 * width;

model::LlamaConfig small(Packing base) {
  return {.layers = layers,
          .width = width,
          .heads = 4,
          .vocab_size = 31,
          .max_seq_len = 8,
          .ffn_width = ffn,
          .kv_heads = 2,
          .lora = {.rank = rank, .base = base}};
}

Plan plan_of(Packing base, const Mesh& mesh, const ScheduleOptions& options = {}) {
  return build_plan(model::build_llama(small(base), {1, 2}), mesh, options);
}

ScheduleOptions in_bf16(Keep keep = Keep::visit) {
  ScheduleOptions options{.keep = keep};
  options.precision.parameters = DType::bf16;
  return options;
}

std::int64_t up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Four bits a value, 32 for each block of 64; or 8, and 32 for every 256 of these in a matrix.
std::int64_t packed_bytes(Packing base) {
  std::int64_t bytes = 0;
  for (const std::int64_t n : matrices)
    bytes += n / 2 + (base == Packing::nf4 ? n / 64 * 4 : n / 64 + up(n / 64, 256) / 256 * 4);
  return bytes;
}

/// A rank's part, a multiple of 64 bytes.
std::int64_t packed_part(Packing base, int ranks) { return up(up(packed_bytes(base), ranks) / ranks, 64); }
std::int64_t part(std::int64_t elements, int ranks, std::int64_t multiple) {
  return up(up(elements, ranks) / ranks, multiple);
}

constexpr Mesh meshes[] = {{}, {1, 1, 2}, {3, 1, 1}, {2, 1, 4}, {1, 1, 8}, {1, 2, 4}, {2, 2, 3}};
constexpr Packing packings[] = {Packing::nf4, Packing::nf4_dq};

const Buffer& shard_of(const Plan& plan, std::uint32_t unit) {
  return plan.buffers[plan.units[unit].parameter_shard.value];
}

TEST(Packing, TakesHalfABytePerValueAndItsScales) {
  EXPECT_EQ(4 * model::packed_words(Packing::nf4, 4096 * 11008), 4096 * 11008 / 2 + 4096 * 11008 / 64 * 4);
  EXPECT_EQ(4 * model::packed_words(Packing::nf4_dq, 4096 * 11008),
            4096 * 11008 / 2 + 4096 * 11008 / 64 + 4096 * 11008 / 64 / 256 * 4);
  EXPECT_EQ(model::packed_words(Packing::nf4, 36), 6) << "18 bytes and a scale, in whole words";
  EXPECT_EQ(model::packed_words(Packing::nf4_dq, 36), 6) << "18 bytes, a scale of one and its own of four";
  EXPECT_EQ(model::packed_words(Packing::nf4, 65), (33 + 8 + 3) / 4);
  EXPECT_EQ(model::packed_words(Packing::none, 4096), 0);
}

TEST(PackedPlan, ShardsAreOfWordsBehindWhatIsNotPacked) {
  for (const Packing base : packings)
    for (const Mesh& mesh : meshes)
      for (const std::int64_t aligned : {16, 32}) {
        const Plan plan = plan_of(base, mesh, aligned == 16 ? ScheduleOptions{} : in_bf16());
        const int f = mesh.shard_degree();
        const std::int64_t kept = part(adapters, f, aligned) + part(norms, f, aligned);
        for (std::uint32_t unit = 1; unit <= layers; ++unit) {
          EXPECT_EQ(shard_of(plan, unit).size_bytes, 4 * kept + packed_part(base, f)) << f;
          EXPECT_EQ(plan.buffers[plan.units[unit].first_moment.value].size_bytes, 4 * part(adapters, f, aligned));
        }
        EXPECT_EQ(plan.units[0].packed.elements, 0) << "table, norm and head";
        EXPECT_EQ(plan.parameters, layers * (values + adapters + norms) + 2 * 31 * width + width);
      }
}

/// Bytes that the first rank receives of packed words, and of other parameters of blocks, by a whole step.
std::pair<double, double> received(const Plan& plan) {
  double packed = 0, rest = 0;
  for (const Segment* segment : plan.sequence())
    for (const Op& op : plan.ops_of(*segment))
      if (op.kind == OpKind::all_gather && op.unit != model::root_unit)
        (plan.inputs(op)[0].dtype == DType::i32 ? packed : rest) += op.wire_bytes;
  return {packed, rest};
}

TEST(PackedPlan, GathersCarryWords) {
  for (const Packing base : packings)
    for (const int k : {1, 3}) {
      const auto packed = [&](const Mesh& mesh, Keep keep) {
        ScheduleOptions options = in_bf16(keep);
        options.micro_batches = k;
        return received(plan_of(base, mesh, options)).first;
      };
      const auto whole = [&](int f) { return static_cast<double>(layers * f * packed_part(base, f)); };
      EXPECT_EQ(packed({1, 1, 8}, Keep::visit), 2 * k * whole(8) * 7 / 8) << "forward and backward";
      EXPECT_EQ(packed({1, 1, 8}, Keep::micro_batch), k * whole(8) * 7 / 8);
      EXPECT_EQ(packed({1, 1, 8}, Keep::step), whole(8) * 7 / 8);
      EXPECT_EQ(packed({2, 1, 4}, Keep::visit), 2 * k * whole(4) * 3 / 4) << "replicas gather for themselves";
      EXPECT_EQ(packed({1, 2, 4}, Keep::visit), k * (whole(8) * 7 / 8 + whole(8) * 3 / 4)) << "from what four retained";
      EXPECT_EQ(packed({}, Keep::visit), 0);
    }
}

/// bf16 carries 16 bits a value, four bits with their scales 4.5, or 4.127.
TEST(PackedPlan, TrafficIsAFewTimesLessThanInHalves) {
  const auto carried = [](Packing base) {
    model::LlamaConfig config = model::llama_preset("llama2-7b");
    config.layers = 2, config.lora = {.rank = 8, .base = base};
    const auto [packed, rest] = received(build_plan(model::build_llama(config, {1, 8}), {1, 1, 8}, in_bf16()));
    return packed + rest;
  };
  const double kept = 2 * 2 * 2 * 7 / 8. * (2 * 8 * 2 * 4096 + 2 * 4096);  // adapters and norms, there and back
  const double plain = carried(Packing::none) - kept;
  EXPECT_NEAR(plain / (carried(Packing::nf4) - kept), 16 / 4.5, 1e-3);
  EXPECT_NEAR(plain / (carried(Packing::nf4_dq) - kept), 16 / (4 + 8. / 64 + 32. / 64 / 256), 1e-3);
}

std::vector<const Op*> compute_ops(const Plan& plan) {
  std::vector<const Op*> ops;
  for (const Op& op : plan.ops_of(plan.segments.front()))
    if (op.lane == Lane::compute) ops.push_back(&op);
  return ops;
}

/// By buffer, the compute ops that touch it.
std::map<BufferId, std::vector<std::size_t>> users(const Plan& plan, const std::vector<const Op*>& ops) {
  std::map<BufferId, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const auto& operands : {plan.inputs(*ops[i]), plan.outputs(*ops[i])})
      for (const Operand& operand : operands)
        if (operand.present()) found[operand.buffer].push_back(i);
  return found;
}

TEST(PackedPlan, AWeightIsThereForItsProductAlone) {
  for (const auto mode : {Recompute::Mode::none, Recompute::Mode::full}) {
    ScheduleOptions options = in_bf16();
    options.recompute.mode = mode;
    const Plan plan = plan_of(Packing::nf4, {1, 1, 2}, options);
    const std::vector<const Op*> ops = compute_ops(plan);
    const auto by_buffer = users(plan, ops);
    std::map<Phase, std::int64_t> count;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i]->kind != OpKind::dequantise) continue;
      ++count[ops[i]->phase];
      const Operand& weight = plan.outputs(*ops[i])[0];
      const Op& product = *ops.at(i + 1);
      EXPECT_THAT(by_buffer.at(weight.buffer), testing::ElementsAre(i, i + 1));
      EXPECT_EQ(plan.inputs(product)[1].buffer, weight.buffer);
      EXPECT_EQ(weight.size_bytes, 2 * product.sizes.cols * product.sizes.inner);
      EXPECT_EQ(plan.buffers[weight.buffer.value].memory, MemoryClass::workspace);
      EXPECT_EQ(ops[i]->cost.read_bytes, static_cast<double>(product.sizes.cols * product.sizes.inner) * 9 / 16);
      EXPECT_EQ(ops[i]->cost.written_bytes, static_cast<double>(weight.size_bytes));
    }
    EXPECT_EQ(count[Phase::forward], 7 * layers);
    // The first block's queries, keys and values have nothing trained before them.
    if (mode == Recompute::Mode::none) {
      EXPECT_EQ(count[Phase::backward], 7 * layers - 3);
    }
  }
}

/// What is alive besides the state of a rank alone: at most one weight more than without packing, and no less than one.
TEST(PackedPlan, ThePeakHasOneWeightMore) {
  const auto transient = [](const Plan& plan) {
    std::int64_t bytes = plan.arena_bytes;
    for (const Buffer& buffer : plan.buffers) bytes -= buffer.persistent ? buffer.size_bytes : 0;
    return bytes;
  };
  const std::int64_t largest = 4 * width * ffn, plain = transient(plan_of(Packing::none, {}));
  const Plan plan = plan_of(Packing::nf4, {});
  EXPECT_LE(transient(plan), plain + largest);
  EXPECT_GE(transient(plan), largest);
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.01 * static_cast<double>(memory_lower_bound(plan)));
  const std::int64_t saved = plan_of(Packing::none, {}).arena_bytes - plain - (plan.arena_bytes - transient(plan));
  EXPECT_EQ(saved, layers * (4 * values - packed_part(Packing::nf4, 1)));
}

TEST(PackedPlan, NothingElseIsAnotherOp) {
  const Plan plain = plan_of(Packing::none, {1, 1, 2}, in_bf16()), packed = plan_of(Packing::nf4, {1, 1, 2}, in_bf16());
  const std::vector<const Op*> before = compute_ops(plain), after = compute_ops(packed);
  std::size_t at = 0;
  for (const Op* op : after) {
    if (op->kind == OpKind::dequantise) continue;
    ASSERT_LT(at, before.size());
    EXPECT_EQ(op->kind, before[at]->kind);
    EXPECT_EQ(op->sizes, before[at]->sizes);
    EXPECT_EQ(op->cost.read_bytes + op->cost.written_bytes,
              before[at]->cost.read_bytes + before[at]->cost.written_bytes);
    ++at;
  }
  EXPECT_EQ(at, before.size());
}

TEST(PackedPlan, OneRankReadsWordsWhereTheyLie) {
  const Plan plan = plan_of(Packing::nf4, {}, in_bf16());
  for (const Op* op : compute_ops(plan)) {
    if (op->kind != OpKind::dequantise) continue;
    const FlatParameter& unit = plan.units[op->unit.value];
    EXPECT_EQ(plan.inputs(*op)[0].buffer, unit.parameter_shard);
    EXPECT_GE(plan.inputs(*op)[0].offset_bytes, 4 * unit.padded_elements);
  }
  EXPECT_EQ(find(plan, plan.segments.front(), {.kind = OpKind::cast_shard}).size(), 1 + 4 * layers)
      << "of adapters and of norms, forward and backward; the root's";
}

constexpr std::pair<Keep, int> cases[] = {{Keep::visit, 1}, {Keep::visit, 3}, {Keep::micro_batch, 2}, {Keep::step, 3}};

/// Units that have packed words and nothing else are among those of single projections.
TEST(PackedPlan, IsPlacedAndOrderedRightly) {
  const Wrap projections{.policy = Wrap::Policy::classes, .names = {"q_proj", "k_proj", "down_proj", "mlp"}};
  for (const Wrap& wrap : {Wrap{}, projections, Wrap{.policy = Wrap::Policy::none}})
    for (const Mesh& mesh : {Mesh{}, Mesh{3, 1, 1}, Mesh{2, 1, 2}, Mesh{1, 2, 2}})
      for (const bool offloads : {false, true})
        for (const auto type : {DType::f32, DType::bf16})
          for (const auto& [keep, k] : cases) {
            ScheduleOptions options{.wrap = wrap, .keep = keep, .micro_batches = k};
            options.precision.parameters = type;
            options.offload = {.parameters = offloads, .gradients = offloads, .optimizer = offloads};
            const Plan plan = plan_of(Packing::nf4_dq, mesh, options);
            const std::string what = fmt::format("policy {} mesh {}x{}x{} offload {} keep {} micro-batches {} {}",
                                                 static_cast<int>(wrap.policy), mesh.replicas, mesh.outer, mesh.inner,
                                                 offloads, static_cast<int>(keep), k, name_of(type));
            EXPECT_THAT(TimingOracle(plan).overlaps(), testing::IsEmpty()) << what;
            EXPECT_THAT(TimingOracle(plan, 1).hazards(), testing::IsEmpty()) << what;
          }
}

/// Behind all other parameters, where a block was gathered or in its shard.
TEST(PackedPlan, WordsLieSideBySide) {
  for (const Mesh& mesh : meshes)
    for (const bool offloads : {false, true}) {
      ScheduleOptions options = in_bf16();
      options.offload.parameters = offloads;
      const Plan plan = plan_of(Packing::nf4, mesh, options);
      std::map<std::uint32_t, std::set<std::pair<std::int64_t, std::int64_t>>> read;  // by unit: begin and end
      for (const Op* op : compute_ops(plan)) {
        if (op->kind != OpKind::dequantise || op->phase != Phase::forward) continue;
        const Operand& words = plan.inputs(*op)[0];
        read[op->unit.value].insert({words.offset_bytes, words.offset_bytes + words.size_bytes});
        EXPECT_LE(words.offset_bytes + words.size_bytes, plan.buffers[words.buffer.value].size_bytes);
      }
      for (const auto& [unit, ranges] : read) {
        ASSERT_EQ(ranges.size(), 7U);
        const std::int64_t first = ranges.begin()->first;
        const bool whole = offloads || mesh.shard_degree() > 1;
        EXPECT_EQ(first, (whole ? 2 : 4) * plan.units[unit].padded_elements);
        EXPECT_EQ(ranges.rbegin()->second - first, packed_bytes(Packing::nf4));
        for (auto range = std::next(ranges.begin()); range != ranges.end(); ++range)
          EXPECT_EQ(range->first, std::prev(range)->second);
      }
    }
}

TEST(PackedPlan, EvaluationFindsTheStateOfTraining) {
  for (const Mesh& mesh : meshes) {
    const Plan training = plan_of(Packing::nf4, mesh, in_bf16());
    const Plan evaluation = build_evaluation_plan(model::build_llama(small(Packing::nf4), {1, 2}), mesh, in_bf16());
    for (std::uint32_t unit = 0; unit <= layers; ++unit) {
      EXPECT_EQ(shard_of(training, unit).offset_bytes, shard_of(evaluation, unit).offset_bytes);
      EXPECT_EQ(shard_of(training, unit).size_bytes, shard_of(evaluation, unit).size_bytes);
    }
    EXPECT_EQ(find(evaluation, evaluation.segments.front(), {.kind = OpKind::dequantise}).size(), 7 * layers);
  }
}

}  // namespace
}  // namespace foreshard::plan
