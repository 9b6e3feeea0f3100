#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/batch_shape.hpp"

/// What is checked of every family's sizes.
namespace foreshard::model {

struct Extents {
  std::int64_t layers, width, heads, vocab_size, max_seq_len;
};

/// Adds a sentence where `value` is below 1.
void check_positive(std::string_view key, std::int64_t value, std::vector<std::string>& found);

/// Adds a sentence where `ffn_width` is negative. The width of a feed-forward layer that is 4 × width if not given; as
/// a double, since sizes may be too large still.
double check_inner_width(std::int64_t width, std::int64_t ffn_width, std::vector<std::string>& found);

/// Adds a sentence for each extent below 1, and for sequences longer than the model's positions.
void check_extents(const Extents& model, const BatchShape& shape, std::vector<std::string>& found);

/// Adds a sentence where heads do not divide the width.
void check_head_division(std::int64_t width, std::int64_t heads, std::vector<std::string>& found);

/// Adds a sentence where sizes in bytes could leave 64 bits. `ffn_width` is the width of all feed-forward matrices of a
/// layer that read the residual stream.
void check_elements(const Extents& model, double ffn_width, const BatchShape& shape, std::vector<std::string>& found);

}  // namespace foreshard::model
