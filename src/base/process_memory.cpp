#include "base/process_memory.hpp"

#include <fstream>
#include <string>

namespace foreshard {

std::int64_t resident_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    if (word != "Pss:") continue;
    std::int64_t kibibytes = 0;
    rollup >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace foreshard
