#pragma once

namespace foreshard::sim::cost {

/// Expected largest of `count` independent standard normal values: 0 of one, 1/√π of two, 1.4236 of eight, about
/// √(2 ln n) of many. ∫₀^∞ (1 − Φ(x)ⁿ) dx − ∫_{−∞}^0 Φ(x)ⁿ dx, by the trapezoidal rule; exact to 1e-6.
double expected_largest_normal(int count);

/// How much longer the slowest of `ranks` computes than their mean, each varying by `sigma` (relative): 1 + σ·E. A
/// collective starts when its last member arrives, so a step takes the slowest rank's time. Time goes to the ranks
/// independently in each step; a rank that is always slow is not in it.
double slowest_rank_factor(double sigma, int ranks);

}  // namespace foreshard::sim::cost
