#include <algorithm>
#include <vector>

#include "kernels/cpu/kernels.hpp"

/// A table is tiny beside everything else: no vectors, no team.
namespace foreshard::kernels::cpu {
namespace {

/// By distance, from the lowest on.
std::vector<std::int64_t> buckets_of(const RelativeBias& o) {
  std::vector<std::int64_t> buckets;
  for (std::int64_t d = 1 - o.seq; d < o.seq; ++d) buckets.push_back(o.bucket(d));
  return buckets;
}

template <class T>
void look_up(const RelativeBias& o, const T* table, T* bias) {
  const auto buckets = buckets_of(o);
  for (std::int64_t head = 0; head < o.heads; ++head)
    for (const std::int64_t bucket : buckets) *bias++ = table[bucket * o.heads + head];
}

template <class T, class Grad>
void add_to_table(const RelativeBias& o, bool accumulate, const T* dbias, Grad* dtable) {
  const auto buckets = buckets_of(o);
  std::vector<float> sums(static_cast<std::size_t>(o.buckets * o.heads));
  if (accumulate)
    std::transform(dtable, dtable + sums.size(), sums.begin(), [](Grad g) { return static_cast<float>(g); });
  for (std::int64_t head = 0; head < o.heads; ++head)
    for (const std::int64_t bucket : buckets)
      sums[static_cast<std::size_t>(bucket * o.heads + head)] += static_cast<float>(*dbias++);
  std::transform(sums.begin(), sums.end(), dtable, [](float sum) { return static_cast<Grad>(sum); });
}

}  // namespace

void relative_bias(const RelativeBias& o, Const table, Mut bias) {
  by_number(bias.dtype, [&]<class T>(T) { look_up(o, as<T>(table), as<T>(bias)); });
}

void relative_bias_backward(const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) {
  by_number(dbias.dtype, [&]<class T>(T) {
    by_result_type<T>(dtable.dtype,
                      [&]<class Grad>(Grad) { add_to_table(o, accumulate, as<T>(dbias), as<Grad>(dtable)); });
  });
}

}  // namespace foreshard::kernels::cpu
