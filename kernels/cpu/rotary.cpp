#include <algorithm>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/sin_cos.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// The cosines and sines of one position after the other, each of width/2 angles and room for a whole last vector.
class Turns {
 public:
  Turns(const Rotary& o, const std::vector<double>& frequencies)
      : frequencies_(frequencies), back_(o.back), cosines_(frequencies.size()), sines_(frequencies.size()) {}

  void move_to(std::int64_t position) {
    for (std::size_t j = 0; j < frequencies_.size(); j += lanes) {
      double angles[lanes];
      for (std::size_t i = 0; i < lanes; ++i) angles[i] = static_cast<double>(position) * frequencies_[j + i];
      const CosSin turned = cos_sin(angles);
      store(cosines_.data() + j, turned.cosine);
      store(sines_.data() + j, back_ ? -turned.sine : turned.sine);
    }
  }
  const float* cosines() const { return cosines_.data(); }
  const float* sines() const { return sines_.data(); }

 private:
  const std::vector<double>& frequencies_;
  bool back_;
  std::vector<float> cosines_, sines_;
};

std::vector<double> frequencies_of(const Rotary& o) {
  const std::int64_t half = o.width / 2;
  std::vector<double> frequencies(static_cast<std::size_t>((half + lanes - 1) / lanes * lanes));
  for (std::int64_t j = 0; j < half; ++j) frequencies[static_cast<std::size_t>(j)] = o.frequency(j);
  return frequencies;
}

/// One head; x may be y, so the first half is kept until both are read.
template <class T>
void turn(std::int64_t half, const Turns& turns, const T* x, T* y, float* first) {
  map(
      half, first, [](Vec u, Vec v, Vec c, Vec s) { return u * c - v * s; }, x, x + half, turns.cosines(),
      turns.sines());
  map(
      half, y + half, [](Vec u, Vec v, Vec c, Vec s) { return v * c + u * s; }, x, x + half, turns.cosines(),
      turns.sines());
  map(half, y, same, first);
}

/// Rows are taken by position, so that the angles of one are computed once for all sequences and heads.
template <class T>
void turn_all(const Rotary& o, const T* x, T* y) {
  const std::vector<double> frequencies = frequencies_of(o);
  const std::int64_t half = o.width / 2, cols = o.heads * o.width;
  share(std::min(o.seq, o.rows), grain_rows(o.rows / std::max<std::int64_t>(1, o.seq) * cols),
        [=, &o, &frequencies](std::int64_t begin, std::int64_t end) {
          Turns turns(o, frequencies);
          std::vector<float> first(static_cast<std::size_t>(half));
          for (std::int64_t position = begin; position < end; ++position) {
            turns.move_to(position);
            for (std::int64_t row = position; row < o.rows; row += o.seq)
              for (std::int64_t at = row * cols; at < (row + 1) * cols; at += o.width)
                turn(half, turns, x + at, y + at, first.data());
          }
        });
}

}  // namespace

void rotary(const Rotary& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { turn_all(o, as<T>(x), as<T>(y)); });
}

}  // namespace foreshard::kernels::cpu
