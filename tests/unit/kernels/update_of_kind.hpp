#pragma once
#include <string>

#include "kernels/backend.hpp"

/// Every optimizer by its name, with settings in which all of its formula counts.
namespace foreshard::kernels {

enum class Kind { adamw, adam, sgd, momentum, nesterov, lion };
inline constexpr Kind kinds[] = {Kind::adamw, Kind::adam, Kind::sgd, Kind::momentum, Kind::nesterov, Kind::lion};

inline std::string name_of(Kind kind) {
  constexpr const char* names[] = {"adamw", "adam", "sgd", "momentum", "nesterov", "lion"};
  return names[static_cast<int>(kind)];
}

inline Update options(Kind kind, std::int64_t count) {
  Update o{count};
  o.learning_rate = 0.01;
  o.weight_decay = 0.1;
  o.grad_scale = 0.5;
  if (kind == Kind::momentum || kind == Kind::nesterov) o.momentum = 0.9;
  o.nesterov = kind == Kind::nesterov;
  return o;
}

/// What an optimizer does not keep of the moments is not touched.
inline void step(Backend& backend, Kind kind, const Update& o, Const g, Mut p, Mut first, Mut second) {
  switch (kind) {
    case Kind::adamw:
      return backend.adamw(o, g, p, first, second);
    case Kind::adam:
      return backend.adam(o, g, p, first, second);
    case Kind::sgd:
      return backend.sgd(o, g, p, {});
    case Kind::lion:
      return backend.lion(o, g, p, first);
    default:
      return backend.sgd(o, g, p, first);
  }
}

}  // namespace foreshard::kernels
