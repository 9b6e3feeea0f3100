#pragma once
#include "sim/runtimes/transformers.hpp"

namespace foreshard::sim::torch {

/// `ViTForImageClassification` of transformers.
struct Vit {
  std::int64_t width = 0, ffn = 0, layers = 0, heads = 0;
  std::int64_t image = 224, patch = 16, channels = 3, labels = 1000;  ///< sides of images and patches in pixels

  std::int64_t patches() const { return (image / patch) * (image / patch); }
  std::int64_t pixels() const { return channels * image * image; }
};

UnitShapes unit_shapes(const Vit& model);

/// The loss of `images` with f32 pixels and i64 labels.
Tensor classification_loss(Eager& eager, Wrapper& wrapper, const Vit& model, std::int64_t images, const Storage& pixels,
                           const Storage& labels, bool recompute);

}  // namespace foreshard::sim::torch
