#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sim/closed_form/step_time.hpp"

namespace foreshard::sim::closed_form {

/// Of a GPU of the catalogue, at best.
struct Gpu {
  std::string name, generation;  ///< "a100-sxm-80gb", "sm_80"
  double half_flops = 0, fp8_flops = 0;
  double memory_bytes_per_s = 0, memory_bytes = 0;
  double best_products = 0.8;  ///< of half_flops, the largest that were measured
  int multiprocessors = 1;
  double node_link_bytes_per_s = 0;
};

/// Constants by name, such as "products.sm_80", each a property of hardware or software with its source.
class Profile {
 public:
  /// The one that is built in, sim/profiles/closed_form.json.
  Profile();

  /// Replaces constants by those of a JSON object {name: value}. Throws InputError(bad_input) that names the file, and
  /// the nearest name where one is unknown.
  void override_from(const std::string& path);

  /// The first of `names` that there is. Throws if there is none: a broken contract.
  double value(const std::vector<std::string>& names) const;
  const std::map<std::string, double>& values() const { return values_; }
  std::size_t fitted() const { return fitted_; }  ///< constants that were fitted to published runs

  /// By its catalogue name, or one that software prints, with its memory in GB where that tells versions apart (0: not
  /// known). Throws InputError(bad_input) with the nearest name.
  const Gpu& gpu(const std::string& name, double memory_gb = 0) const;

 private:
  std::map<std::string, double> values_;
  std::size_t fitted_ = 0;
  mutable std::map<std::string, Gpu> gpus_;  ///< read so far, by the name asked for
};

}  // namespace foreshard::sim::closed_form
