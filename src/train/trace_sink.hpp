#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "trace/writer.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// Brings what all ranks recorded into one trace file, which rank 0 writes. Nothing touches the disk, or other ranks,
/// but `flush` and `close`.
class TraceSink {
 public:
  /// Collective. `path` must not exist.
  TraceSink(comm::Communicator& communicator, const std::string& path, const trace::RunInfo& run,
            const plan::Plan& plan, std::vector<trace::RankInfo> ranks);
  ~TraceSink();

  /// This rank's events of one step.
  void add(std::int64_t step, const StepResult& result, std::int64_t tokens, std::vector<trace::Event> events,
           const engine::Engine& engine);

  void flush();                               ///< collective
  void close(const trace::Summary& summary);  ///< collective

 private:
  comm::Communicator& communicator_;
  const plan::Plan& plan_;
  std::unique_ptr<trace::Writer> writer_;  // on rank 0
  std::vector<trace::Event> events_, last_step_;
  std::vector<trace::StepRow> steps_;
  const engine::Engine* engine_ = nullptr;
};

}  // namespace foreshard::train
