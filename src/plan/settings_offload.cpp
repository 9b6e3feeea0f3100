#include "plan/settings_offload.hpp"

namespace foreshard::plan {

void add_offload_keys(Config& config) {
  config.add("offload.parameters", false, "keep parameter shards in host memory; fetched for each gather and update");
  config.add("offload.gradients", false,
             "move reduced gradient shards to host memory, where micro-batches are added up and norms are taken");
  config.add(
      "offload.optimizer", false,
      "keep moments in host memory; fetched for each update, or updated there if all else is in host memory too");
}

Offload read_offload(const Config& config) {
  return {.parameters = config.get<bool>("offload.parameters"),
          .gradients = config.get<bool>("offload.gradients"),
          .optimizer = config.get<bool>("offload.optimizer")};
}

}  // namespace foreshard::plan
