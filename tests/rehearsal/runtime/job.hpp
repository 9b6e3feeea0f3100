#pragma once
#include <vector>

namespace rehearsal {

/// What the environment says of this process: if FORESHARD_REHEARSAL_DEVICES is set, it is one rank of a job whose
/// nodes have so many devices, of which CUDA_VISIBLE_DEVICES may name some ("1,0"). Else ranks are threads of a test,
/// with two devices.
struct Job {
  bool processes = false;
  std::vector<int> devices{0, 1};  ///< that this process sees, by their places on the node
};
const Job& job();

/// The place on the node of the device that this process calls so.
int physical_device(int device);

}  // namespace rehearsal
