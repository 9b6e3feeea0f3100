#include "train/hosts.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/log.hpp"

namespace foreshard::train {

int cores_of_rank(int ranks_of_node) {
  const int allowed = static_cast<int>(std::thread::hardware_concurrency());  // follows the affinity mask
  const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, allowed < online ? allowed : online / ranks_of_node);
}

std::vector<std::string> gather_hosts(comm::Communicator& communicator) {
  std::vector<std::string> hosts;
  const std::string host = host_name();
  for (const auto& bytes : communicator.gather(std::as_bytes(std::span(host))))
    hosts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return hosts;
}

}  // namespace foreshard::train
