// What crosses the link in a step, by the counters of the network interface, beside the closed formulas.
#include <fmt/format.h>

#include <fstream>

#include "two_nodes.hpp"

namespace foreshard::net {
namespace {

// A model of 12 w² + 13 w parameters a block and (V + T + 2) w in the root; its root is small, as it is gathered once.
constexpr int layers = 4, width = 128, vocabulary = 256, length = 32;
constexpr double root = (vocabulary + length + 2.0) * width;
constexpr double model = layers * (12.0 * width * width + 13.0 * width) + root;

constexpr double W = 4, G = 2;         ///< ranks, and ranks of a node
constexpr double other = (W - G) / W;  ///< part of a group of all ranks that is on the other node
constexpr double f32 = 4, bf16 = 2;    ///< bytes

/// What every rank receives from the other node, in bytes a step. Gathers of M forward and M − root backward (the root
/// stays for the step, also for later micro-batches), a reduction of M; with replicas, or replicated, twice the part of
/// each shard that is elsewhere. A collective's bytes from the other node are (W − G)/W of its buffer: Zhao et al.,
/// "PyTorch FSDP", VLDB 2023, section 3.2.2, with G ranks on a node.
struct Case {
  const char* name;
  Order order;
  const char* arguments;
  double received_bytes;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr Case cases[] = {
    {"full_shard", Order::blocks, "", f32*(3 * model - root) * other},
    {"shard_grad_op", Order::blocks, "--parallel.strategy=shard_grad_op", f32 * 2 * model* other},
    {"no_shard", Order::blocks, "--parallel.strategy=no_shard", f32 * 2 * model* other},
    {"hybrid_sharded_in_nodes", Order::blocks, "--parallel.strategy=hybrid_shard --parallel.shard_degree=2",
     f32 * 2 * model*(W - G) / (G * W)},
    {"hybrid_sharded_across_nodes", Order::cyclic, "--parallel.strategy=hybrid_shard --parallel.shard_degree=2",
     f32*(3 * model - root) / 2},
    {"reshard_in_nodes", Order::blocks, "--parallel.reshard_after_forward=2", f32 * 2 * model* other},
    {"bf16", Order::blocks, "--precision.param=bf16 --precision.reduce=bf16", bf16*(3 * model - root) * other},
    {"bf16_gathers", Order::blocks, "--precision.param=bf16", (bf16 * (2 * model - root) + f32 * model) * other},
    {"three_micro_batches", Order::blocks, "--train.global_batch_size=12", f32*(9 * model - 5 * root) * other},
};

struct LinkBytes {
  double sent = 0, received = 0;
};

class Traffic : public TwoNodes, public testing::WithParamInterface<Case> {
 protected:
  LinkBytes of_steps(int steps) const {
    const auto file = (data.path() / "bytes").string();
    const std::string job = faults::training(
        ranks, data.path(),
        fmt::format("--model.layers={} --model.width={} --model.vocab_size={} --model.max_seq_len={} "
                    "--model.tied_head=true --train.seq_len={} --train.steps={} --trace.enable=false {}",
                    layers, width, vocabulary, length, length, steps, GetParam().arguments));
    const faults::Result result = faults::run(across(job, GetParam().order, "--bytes " + file));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    LinkBytes bytes;
    std::ifstream(file) >> bytes.sent >> bytes.received;
    return bytes;
  }
};

/// Starting and ending the job cost bytes too, so runs of two lengths are compared. Headers of TCP and MPI, messages
/// that begin a transfer, and sums of a few numbers come on top.
TEST_P(Traffic, IsThatOfTheClosedFormula) {
  constexpr int few = 2, many = 12;
  const LinkBytes less = of_steps(few), more = of_steps(many);
  const double expected = ranks_per_node * GetParam().received_bytes;
  const double sent = (more.sent - less.sent) / (many - few) / expected;
  const double received = (more.received - less.received) / (many - few) / expected;
  RecordProperty("sent_over_formula", fmt::format("{:.4f}", sent));
  RecordProperty("received_over_formula", fmt::format("{:.4f}", received));
  for (const double ratio : {sent, received}) {
    EXPECT_GE(ratio, 1.0) << "of " << expected << " bytes";
    EXPECT_LE(ratio, 1.02) << "of " << expected << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Traffic, testing::ValuesIn(cases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace foreshard::net
