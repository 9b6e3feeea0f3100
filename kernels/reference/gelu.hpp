#pragma once

namespace foreshard::kernels::reference {

/// GELU in its tanh form, and its derivative.
double gelu_value(double v);
double gelu_slope(double v);

}  // namespace foreshard::kernels::reference
