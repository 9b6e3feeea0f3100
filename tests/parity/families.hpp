#pragma once
#include <string>
#include <vector>

#include "local_run.hpp"

namespace foreshard::parity {

/// A small model of a family, of which nothing divides anything, and what is its own in the ways to train it.
struct Family {
  std::string name;
  model::Config model;
  std::int64_t seq = 7;
  std::string noise = "";  ///< end of the names of parameters that change no loss
  std::vector<std::string> frozen = {};
  std::vector<plan::Wrap> wraps = {};
  std::vector<plan::Recompute> recomputes = {};

  /// Rows of a step; every fifth target, or class, is ignored.
  train::Batch batch(std::int64_t rows, std::int64_t step) const;
};

/// GPT, Llama, Llama with LoRA, MPT, T5, ViT and DeepViT.
const std::vector<Family>& families();

/// Without parameters that change no loss: their gradients are rounding noise, by which Adam moves them.
Outcome without_noise(const Family& family, Outcome outcome);

inline void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

}  // namespace foreshard::parity
