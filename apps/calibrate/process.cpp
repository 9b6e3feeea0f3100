#include "apps/calibrate/process.hpp"

#include <sched.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace foreshard::calibrate {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[11];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

int online_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

void use_all_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof all, &all);  // the kernel drops cores that are not allowed
}

void use_core(int index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && index-- == 0) CPU_SET(core, &one);
  if (CPU_COUNT(&one) == 1) sched_setaffinity(0, sizeof one, &one);
}

}  // namespace foreshard::calibrate
