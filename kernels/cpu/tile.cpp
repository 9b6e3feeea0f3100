#include "kernels/cpu/tile.hpp"

namespace foreshard::kernels::cpu {
namespace {

template <int vectors, class Word>
void in_halves(std::int64_t depth, Left<Word> a, Right<Word> b, Target c, bool accumulate) {
  constexpr int half = tile_rows / 2;
  tile<half, vectors>(depth, a, b, c, accumulate);
  tile<half, vectors, Word>(depth, {a.data + half * a.row, a.row, a.depth}, b, {c.data + half * c.row, c.row},
                            accumulate);
}

}  // namespace

template <class Word>
void multiply(std::int64_t vectors, std::int64_t depth, Left<Word> a, Right<Word> b, Target c, bool accumulate) {
  while (vectors >= 4) {
    in_halves<4>(depth, a, b, c, accumulate);
    b.data += 4 * lanes;
    c.data += 4 * lanes;
    vectors -= 4;
  }
  switch (vectors) {
    case 3:
      return tile<tile_rows, 3>(depth, a, b, c, accumulate);
    case 2:
      return tile<tile_rows, 2>(depth, a, b, c, accumulate);
    case 1:
      return tile<tile_rows, 1>(depth, a, b, c, accumulate);
    default:
      return;
  }
}

template void multiply(std::int64_t, std::int64_t, Left<float>, Right<float>, Target, bool);
template void multiply(std::int64_t, std::int64_t, Left<BFloat16Pair>, Right<BFloat16Pair>, Target, bool);

}  // namespace foreshard::kernels::cpu
