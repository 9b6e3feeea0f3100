// The order in which real PyTorch FSDP issues its collectives around each unit's compute, for a model of four units and
// a root, executed with torch 2.15.0 over a fake process group of 8 ranks. Ours must be the same, but for one
// difference on purpose: the root is gathered once a step, not once a micro-batch, since nothing frees it in between.
#include <gtest/gtest.h>

#include "plan/print.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

struct Case {
  const char* name;
  BackwardPrefetch prefetch;
  int prefetch_depth, forward_prefetch;
  const char* order;  ///< of one micro-batch
};

constexpr Case cases[] = {
    {"fsdp1_full_none", BackwardPrefetch::none, 1, 0,
     "AG:root AG:u0 F:u0 AG:u1 F:u1 AG:u2 F:u2 AG:u3 F:u3 AG:u3 B:u3 RS:u3 AG:u2 B:u2 RS:u2 AG:u1 B:u1 RS:u1 AG:u0 "
     "B:u0 RS:u0 RS:root"},
    {"fsdp1_full_post", BackwardPrefetch::post, 1, 0,
     "AG:root AG:u0 F:u0 AG:u1 F:u1 AG:u2 F:u2 AG:u3 F:u3 AG:u3 B:u3 AG:u2 RS:u3 B:u2 AG:u1 RS:u2 B:u1 AG:u0 RS:u1 "
     "B:u0 RS:u0 RS:root"},
    {"fsdp1_full_pre_and_fsdp2_depth_0", BackwardPrefetch::pre, 1, 0,
     "AG:root AG:u0 F:u0 AG:u1 F:u1 AG:u2 F:u2 AG:u3 F:u3 AG:u3 AG:u2 B:u3 RS:u3 AG:u1 B:u2 RS:u2 AG:u0 B:u1 RS:u1 "
     "B:u0 RS:u0 RS:root"},
    {"fsdp2_depth_1", BackwardPrefetch::pre, 1, 1,
     "AG:root AG:u0 AG:u1 F:u0 AG:u2 F:u1 AG:u3 F:u2 F:u3 AG:u3 AG:u2 B:u3 RS:u3 AG:u1 B:u2 RS:u2 AG:u0 B:u1 RS:u1 "
     "B:u0 RS:u0 RS:root"},
    {"fsdp2_depth_2", BackwardPrefetch::pre, 2, 2,
     "AG:root AG:u0 AG:u1 AG:u2 F:u0 AG:u3 F:u1 F:u2 F:u3 AG:u3 AG:u2 AG:u1 B:u3 RS:u3 AG:u0 B:u2 RS:u2 B:u1 RS:u1 "
     "B:u0 RS:u0 RS:root"},
};

class CollectiveOrder : public testing::TestWithParam<Case> {
 protected:
  static ScheduleOptions options(int micro_batches) {
    ScheduleOptions o = free_options();
    o.prefetch = GetParam().prefetch;
    o.prefetch_depth = GetParam().prefetch_depth;
    o.forward_prefetch = GetParam().forward_prefetch;
    o.micro_batches = micro_batches;
    return o;
  }
};

TEST_P(CollectiveOrder, OfOneMicroBatchIsPyTorchs) {
  EXPECT_EQ(order_text(tiny_plan(options(1))), std::string("|micro0 ") + GetParam().order + " |step");
}

TEST_P(CollectiveOrder, OfTwoMicroBatchesGathersTheRootOnce) {
  const std::string order = GetParam().order, later = order.substr(std::string("AG:root ").size());
  EXPECT_EQ(order_text(tiny_plan(options(2))), "|micro0 " + order + " |micro1 " + later + " |step");
}

INSTANTIATE_TEST_SUITE_P(PyTorch, CollectiveOrder, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

TEST(CollectiveOrderWithoutSharding, ReducesOverAllReplicas) {
  EXPECT_EQ(order_text(tiny_plan(free_options(), 1, 8)),
            "|micro0 F:u0 F:u1 F:u2 F:u3 B:u3 AR:u3 B:u2 AR:u2 B:u1 AR:u1 B:u0 AR:u0 AR:root |step");
  EXPECT_EQ(order_text(tiny_plan(free_options(), 1, 1)), "|micro0 F:u0 F:u1 F:u2 F:u3 B:u3 B:u2 B:u1 B:u0 |step");
}

}  // namespace
}  // namespace foreshard::plan
