#include "base/process_memory.hpp"

#include <fstream>
#include <string>
#include <string_view>

namespace foreshard {
namespace {

/// A line "Name: <kibibytes> kB" of a file of /proc/self, in bytes.
std::int64_t bytes_of(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (word != name) continue;
    std::int64_t kibibytes = 0;
    file >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

std::int64_t resident_bytes() { return bytes_of("/proc/self/smaps_rollup", "Pss:"); }

ResidentKinds resident_kinds() {
  const char* status = "/proc/self/status";
  return {.own = bytes_of(status, "RssAnon:") + bytes_of(status, "RssShmem:"),
          .files = bytes_of(status, "RssFile:"),
          .shared_files = bytes_of("/proc/self/smaps_rollup", "Shared_Clean:")};
}

}  // namespace foreshard
