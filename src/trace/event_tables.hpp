#pragma once
#include "trace/table.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

// The columns of /events, /batches, /steps, /memory and /ranks.
Fields<EventRow> event_fields();
Fields<Batch> batch_fields();
Fields<StepRow> step_fields();
Fields<MemoryRow> memory_fields(bool with_workspace = true);  ///< which files of format 1.0 do not have
Fields<RankInfo> rank_fields();

/// A row of /summary/collectives.
struct CollectiveRow {
  plan::OpKind kind{};
  CollectiveTotal total;
};
Fields<CollectiveRow> collective_fields();

}  // namespace foreshard::trace
