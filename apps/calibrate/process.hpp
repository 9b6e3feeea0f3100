#pragma once
#include <string>

namespace foreshard::calibrate {

std::string processor_name();  ///< the model name of /proc/cpuinfo, or "unknown processor"
std::string today();           ///< ISO 8601
int online_cores();            ///< of this machine, whatever this process is bound to

/// Lets this thread, and those it starts, run on all cores, whatever a launcher bound it to.
void use_all_cores();

/// Binds this thread, and those it starts, to the `index`-th core that it may use.
void use_core(int index);

}  // namespace foreshard::calibrate
