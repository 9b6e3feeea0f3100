#include "sim/runtimes/vit.hpp"

#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

/// A classification token goes before the patches.
std::int64_t positions(const Vit& m) { return m.patches() + 1; }

Shapes block_shapes(const Vit& m) {
  Shapes shapes;
  for (int i = 0; i < 4; ++i) add_linear(shapes, m.width, m.width, true);
  shapes.insert(shapes.end(), 4, {m.width});
  add_linear(shapes, m.ffn, m.width, true);
  add_linear(shapes, m.width, m.ffn, true);
  return shapes;
}

Tensor dense(Eager& eager, const Parameters& p, std::size_t at, std::int64_t rows, const Tensor& x) {
  return eager.linear(x, p[at], p[at + 1], rows);
}

Tensor embedded(Eager& eager, const Parameters& p, const Vit& m, std::int64_t images, const Storage& pixels) {
  Tensor x = eager.convolution(pixels, p[2], p[3], images * m.patches() * m.width);
  const Tensor token = eager.expand(p[0], images * m.width);
  x = eager.cat({token, x});
  x = eager.add(x, p[1]);
  return x;
}

Tensor attention(Eager& eager, const Parameters& p, const Vit& m, std::int64_t rows, const Tensor& x) {
  const Tensor q = dense(eager, p, 0, rows, x), k = dense(eager, p, 2, rows, x), v = dense(eager, p, 4, rows, x);
  Tensor y = eager.sdpa(q, k, v, {}, rows * m.heads, positions(m), {.causal = false});
  y = dense(eager, p, 6, rows, y);
  return y;
}

Tensor feed_forward(Eager& eager, const Parameters& p, std::int64_t rows, const Tensor& x) {
  Tensor h = dense(eager, p, 12, rows, x);
  h = eager.gelu(h);
  h = dense(eager, p, 14, rows, h);
  return h;
}

Tensor block(Eager& eager, const Parameters& p, const Vit& m, std::int64_t rows, const Tensor& x) {
  Tensor h = layer_norm(eager, p, 8, x);
  h = attention(eager, p, m, rows, h);
  h = eager.add(h, x);
  const Tensor residual = h;
  h = layer_norm(eager, p, 10, h);
  h = feed_forward(eager, p, rows, h);
  h = eager.add(h, residual);
  return h;
}

Tensor last_states(Eager& eager, Wrapper& wrapper, const Vit& m, std::int64_t images, const Storage& pixels,
                   bool recompute) {
  const Parameters& root = wrapper.parameters(0);
  const Tensor first = embedded(eager, root, m, images, pixels);
  const std::int64_t rows = images * positions(m);
  Tensor x = first;
  for (std::size_t unit = 1; unit <= static_cast<std::size_t>(m.layers); ++unit)
    x = wrapper.forward(unit, x, [&](const Tensor& input) {
      const auto run = [&eager, &wrapper, unit, m, rows, input] {
        return block(eager, wrapper.parameters(unit), m, rows, input);
      };
      return recompute ? eager.checkpointed(run) : run();
    });
  return layer_norm(eager, root, 4, x);
}

/// FSDP's mixed precision casts what the root is given.
Storage cast_pixels(Eager& eager, const Vit& m, std::int64_t images, const Storage& pixels, DType type) {
  return type == DType::f32 ? pixels : eager.empty(images * m.pixels(), type);
}

}  // namespace

UnitShapes unit_shapes(const Vit& m) {
  UnitShapes units{{{1, m.width},
                    {1, positions(m) * m.width},
                    {m.width, m.channels * m.patch * m.patch},
                    {m.width},
                    {m.width},
                    {m.width},
                    {m.labels, m.width},
                    {m.labels}}};
  units.resize(static_cast<std::size_t>(m.layers) + 1, block_shapes(m));
  return units;
}

Tensor classification_loss(Eager& eager, Wrapper& wrapper, const Vit& m, std::int64_t images, const Storage& pixels,
                           const Storage& labels, bool recompute) {
  Tensor logits;  // part of the model's output, which outlives its forward by the wrapper's hooks
  return wrapper.forward(0, {}, [&](const Tensor&) {
    const Parameters& root = wrapper.parameters(0);
    const Storage cast = cast_pixels(eager, m, images, pixels, root[0].type);
    const Tensor states = last_states(eager, wrapper, m, images, cast, recompute);
    const Tensor pooled = eager.slice(states, images * m.width);
    logits = dense(eager, root, 6, images, pooled);
    return eager.cross_entropy(logits, labels);
  });
}

}  // namespace foreshard::sim::torch
