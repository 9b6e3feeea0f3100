#pragma once

namespace foreshard::comm {

/// How an element in memory becomes the number that is summed, and back. Integers are summed unsigned: they wrap.
template <class T>
struct Plain {
  using Stored = T;
  using Summed = T;
  static Summed widen(Stored value) { return value; }
  static Stored narrow(Summed value) { return value; }
};

/// A number of 16 bits (base/half.hpp), summed in float.
template <class T>
struct Half {
  using Stored = T;
  using Summed = float;
  static float widen(T value) { return static_cast<float>(value); }
  static T narrow(float value) { return T(value); }
};

}  // namespace foreshard::comm
