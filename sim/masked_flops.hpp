#pragma once
#include <string>

#include "plan/plan.hpp"

namespace foreshard::sim {

/// Of `model_flops` (predict.hpp), in one step of one rank: what is counted for pairs of tokens that causal attention
/// masks, about half of the square, and kernels skip. 0 where nothing is masked.
double masked_flops(const plan::Plan& plan);

/// A line about it where it is a tenth of the count or more, else nothing: `counted` and `masked` FLOPs, and the part
/// of the peak that `counted` would be.
std::string masked_note(double counted, double masked, double part_of_peak);

}  // namespace foreshard::sim
