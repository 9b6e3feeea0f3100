#include "sim/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/kernel_cost.hpp"

namespace foreshard::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Machine measured() {
  Machine machine = generic_machine(2);
  machine.name = "a processor";
  machine.date = "2026-01-31";
  machine.kernels = {{OpKind::linear, false, 2, {{{.rows = 512, .cols = 192, .inner = 768}, 1.25e-3}}, "measured"}};
  machine.collectives = {{OpKind::all_gather, 4, {{1024, 2e-6}, {65536, 3.5e-5}}, "measured"}};
  machine.process_base_bytes = {4e7, "measured"};
  return machine;
}

TEST(MachineFile, ReadsBackWhatWasWritten) {
  const Machine machine = parse_machine(to_json(measured()), "m.json");
  EXPECT_EQ(machine.name, "a processor");
  EXPECT_EQ(machine.date, "2026-01-31");
  EXPECT_EQ(machine.cores, 2);
  EXPECT_EQ(machine.process_base_bytes.value, 4e7);
  EXPECT_EQ(machine.process_base_bytes.source, "measured");
  const KernelTable& table = machine.kernels.front();
  EXPECT_EQ(table.kind, OpKind::linear);
  EXPECT_EQ(table.busy_cores, 2);
  EXPECT_EQ(table.points.front().sizes, (Sizes{.rows = 512, .cols = 192, .inner = 768}));
  EXPECT_EQ(table.points.front().seconds, 1.25e-3);
  EXPECT_EQ(machine.collectives.front().ranks, 4);
  EXPECT_EQ(machine.collectives.front().points.back().bytes, 65536);
}

TEST(MachineFile, WhatItLacksIsAssumedAndSaysSo) {
  const Machine machine = parse_machine(to_json(measured()), "m.json");
  std::string source;
  cost::kernel_seconds(machine, OpKind::linear, false, {.rows = 8, .cols = 8, .inner = 8}, 1, &source);
  EXPECT_EQ(source, "measured");
  cost::kernel_seconds(machine, OpKind::dropout, false, {.rows = 8, .cols = 8}, 1, &source);
  EXPECT_THAT(source, HasSubstr("assumed"));
  cost::collective_seconds(machine, OpKind::reduce_scatter, 1e6, {2, 2}, &source);
  EXPECT_THAT(source, HasSubstr("assumed"));
}

std::string complaint(const std::string& text) {
  try {
    parse_machine(text, "m.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineFile, EveryFaultNamesFileKeyValueAndExpectation) {
  const std::string good = to_json(measured());
  const auto bad = [&](const char* from, const char* to) { return complaint(replaced(good, from, to)); };
  EXPECT_THAT(complaint("{\"schema\""), HasSubstr("m.json: not JSON"));
  EXPECT_THAT(complaint("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(bad("\"cores\": 2", "\"cores\": 0"), AllOf(HasSubstr("m.json: 'cores' is 0"), HasSubstr("at least 1")));
  EXPECT_THAT(bad("\"cores\": 2", "\"corse\": 2"), HasSubstr("the key 'cores'"));
  EXPECT_THAT(bad("\"schema\": 1", "\"schema\": 9"), HasSubstr("'schema' is 9, expected 1"));
  EXPECT_THAT(bad("\"linear\"", "\"lineal\""), HasSubstr("'kernels[0].kind' is \"lineal\""));
  EXPECT_THAT(bad("\"cols\"", "\"columns\""), HasSubstr("'kernels[0].columns[1]'"));
  EXPECT_THAT(bad("0.00125", "-0.00125"),
              AllOf(HasSubstr("'kernels[0].points[0][3]' is -0.00125"), HasSubstr("above 0")));
  EXPECT_THAT(bad("65536", "512"), AllOf(HasSubstr("'collectives[0].points'"), HasSubstr("bytes increasing")));
}

TEST(MachineFile, AMissingFileIsNamed) {
  EXPECT_THROW(
      try { read_machine("/nowhere/m.json"); } catch (const InputError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("/nowhere/m.json"), HasSubstr("foreshard-calibrate")));
        throw;
      },
      InputError);
}

TEST(GenericMachine, KnowsEveryOp) {
  const Machine machine = generic_machine(8);
  for (int i = 0; i < static_cast<int>(OpKind::count_); ++i) {
    const auto kind = static_cast<OpKind>(i);
    const bool moves = kind == OpKind::all_gather || kind == OpKind::reduce_scatter || kind == OpKind::all_reduce ||
                       kind == OpKind::sum_norm || kind == OpKind::sum_loss || kind == OpKind::gather_norm;
    const Sizes sizes{.rows = 64, .cols = 64, .inner = 64, .batch = 2, .seq = 32, .heads = 4};
    const double seconds = moves ? cost::collective_seconds(machine, kind, 1e6, {64, 8})
                                 : cost::kernel_seconds(machine, kind, false, sizes, 8);
    EXPECT_GT(seconds, 0) << model::name_of(kind);
    EXPECT_LT(seconds, 1) << model::name_of(kind);
  }
}

}  // namespace
}  // namespace foreshard::sim
