#include <vector>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

/// Calls f(element of the bias, element of the table) for all of the bias.
template <class F>
void for_elements(const RelativeBias& o, F f) {
  for (std::int64_t head = 0; head < o.heads; ++head)
    for (std::int64_t d = 1 - o.seq; d < o.seq; ++d)
      f(head * o.distances() + d + o.seq - 1, o.bucket(d) * o.heads + head);
}

template <class T, class Grad>
void add_to_table(const RelativeBias& o, bool accumulate, const T* dbias, Grad* dtable) {
  std::vector<double> sums(static_cast<std::size_t>(o.buckets * o.heads));
  for_elements(o, [&](std::int64_t from, std::int64_t to) { sums[to] += static_cast<double>(dbias[from]); });
  for (std::size_t i = 0; i < sums.size(); ++i)
    dtable[i] = static_cast<Grad>(accumulate ? static_cast<double>(dtable[i]) + sums[i] : sums[i]);
}

}  // namespace

void relative_bias(const RelativeBias& o, Const table, Mut bias) {
  by_number(bias.dtype, [&]<class T>(T) {
    for_elements(o, [&](std::int64_t to, std::int64_t from) { as<T>(bias)[to] = as<T>(table)[from]; });
  });
}

void relative_bias_backward(const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) {
  by_number(dbias.dtype, [&]<class T>(T) {
    by_result_type<T>(dtable.dtype,
                      [&]<class Grad>(Grad) { add_to_table(o, accumulate, as<T>(dbias), as<Grad>(dtable)); });
  });
}

}  // namespace foreshard::kernels::reference
