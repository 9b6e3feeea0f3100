#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace foreshard::kernels::cpu {

/// Calls work(begin, end) for ranges that cover [0, count), one for each member of the caller's OpenMP team. Ranges
/// begin at multiples of `grain`; a team is used only if everyone gets one. `work` must give the same bits however the
/// range is cut.
template <class F>
void share(std::int64_t count, std::int64_t grain, F work) {
  const std::int64_t grains = (count + grain - 1) / grain;
  if (omp_get_max_threads() == 1 || grains < omp_get_max_threads()) {
    if (count > 0) work(std::int64_t{0}, count);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel
  try {
    const std::int64_t team = omp_get_num_threads(), member = omp_get_thread_num();
    const std::int64_t begin = grains * member / team * grain, end = grains * (member + 1) / team * grain;
    if (begin < std::min(end, count)) work(begin, std::min(end, count));
  } catch (...) {
#pragma omp critical
    failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
}

/// Elements below which a second thread costs more than it brings.
inline constexpr std::int64_t grain_elements = 16384;

/// Rows of `cols` elements that make a grain.
inline std::int64_t grain_rows(std::int64_t cols) {
  return std::max<std::int64_t>(1, grain_elements / std::max<std::int64_t>(1, cols));
}

}  // namespace foreshard::kernels::cpu
