#include "sim/network/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim::network {
namespace {

Tuning newest() {
  return {.base_us = {{{6.6, 14, 8.4}, {6.8, 14, 8.4}, {0, 0, 0}, {0, 0, 0}, {8, 8, 8}}},
          .nvlink_us = {{{.6, 1.9, 3.4}, {.6, 1.25, 4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}}},
          .pcie_us = {{{1, 2.5, 5.7}, {1, 1.9, 4}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4}}},
          .network_us = {{{2.7, 4, 14}, {5, 8.5, 14}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}}},
          .ll_max = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}},
          .ring_ll128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}},
          .tree_ll128 = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}},
          .tree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}},
          .nvls_tree = {{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}},
          .nvls_efficiency = {0, 0, .85, .74}};
}

void double_hopper_for_blackwell(Tuning& tuning) {
  for (Caps* caps : {&tuning.ll_max, &tuning.ring_ll128, &tuning.tree_ll128, &tuning.tree})
    for (std::size_t i = 0; i < 3; ++i) (*caps)[3][i] = 2 * (*caps)[2][i];
}

void as_in_2_18(Tuning& tuning) {
  tuning.nvlink_us[2][2] = tuning.nvlink_us[3][2] = 23;
  tuning.ll_max[2] = tuning.ll_max[1];
}

void as_in_2_10(Tuning& tuning) {
  tuning.base_us[0] = {3.6, 10, 8.4}, tuning.base_us[1] = {4.4, 4.4, 0};
  tuning.nvlink_us[0] = {.47, 1.9, 3.4}, tuning.network_us[0] = {2.7, 4, 9.6};
  tuning.nvlink_us[1][2] = tuning.network_us[1][2] = 28;
  tuning.ring_ll = 0.25;
  tuning.ampere_bus_max = 235;
}

constexpr std::array<double, 23> tree_ll{1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
                                         .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1};
constexpr std::array<double, 23> tree_ll128{1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                            .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1};
constexpr std::array<double, 23> tree_simple{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                             .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};

}  // namespace

Generation generation_of(int compute_capability) {
  if (compute_capability >= 100) return Generation::blackwell;
  if (compute_capability >= 90) return Generation::hopper;
  return compute_capability >= 80 ? Generation::ampere : Generation::volta;
}

Tuning tuning_of(const Version& version) {
  Tuning tuning = newest();
  if (version < Version{2, 28, 3}) tuning.nvls_by_table = false, double_hopper_for_blackwell(tuning);
  if (version < Version{2, 23, 4}) tuning.pat = false;
  if (version < Version{2, 21, 5}) as_in_2_18(tuning);
  if (version < Version{2, 18, 0}) tuning.nvls = false, as_in_2_10(tuning);
  return tuning;
}

double tree_correction(Protocol protocol, double bytes) {
  const auto& table = protocol == Protocol::ll ? tree_ll : protocol == Protocol::ll128 ? tree_ll128 : tree_simple;
  if (bytes < 64) return 1;
  const auto index = static_cast<std::size_t>(std::floor(std::log2(bytes / 64)));
  return index < table.size() ? table[index] : 1;
}

}  // namespace foreshard::sim::network
