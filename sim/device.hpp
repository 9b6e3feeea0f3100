#pragma once
#include <string>

#include "sim/machine.hpp"

namespace foreshard::sim {

/// One accelerator as software sees it (one of the two dies of an MI250X). SI units: FLOP/s, bytes, bytes/s, Hz, W.
/// Peaks are dense, 0 where the device cannot compute in that type; sums of half products are in fp32.
struct Device {
  std::string name;
  std::string architecture;  ///< "sm_90", "gfx942"
  Quantity bf16_flops, fp16_flops, tf32_flops, fp32_flops, fp8_flops;
  Quantity matmul_flops;        ///< of the best matrix product in bf16 (fp16 where there is none)
  Quantity memory_bytes;        ///< as the driver reports
  Quantity memory_bytes_per_s;  ///< peak
  Quantity link_bytes_per_s;    ///< to other devices, per direction, all links together; 0: only PCIe
  int nvlinks = 0;              ///< that `link_bytes_per_s` consists of
  int pcie_generation = 4, pcie_lanes = 16;
  int multiprocessors = 1;
  Quantity l2_bytes, clock_hz, power_w;

  /// 90 for "sm_90"; 0 for devices that are not NVIDIA's.
  int compute_capability() const;
};

/// By the name in the catalogue ("h100-sxm"), by the name that software prints ("NVIDIA H100 80GB HBM3"), or from a
/// JSON file of the form of sim/machines/gpus. Throws InputError (bad_input): an unknown name with the nearest one, a
/// bad file with key, value and what was expected.
Device read_device(const std::string& name_or_path);

/// The name in the catalogue of a name that software prints, ignoring case; `printed` itself if it is not known.
std::string catalogue_name_of(const std::string& printed);

/// The catalogue's key of the device of this name, "h100-sxm" of "H100-SXM5-80GB"; the name itself where it has none.
std::string catalogue_key_of(const std::string& device_name);

}  // namespace foreshard::sim
