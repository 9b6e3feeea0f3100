#include "model/size_problems.hpp"

#include <fmt/format.h>

namespace foreshard::model {
namespace {

/// Far beyond any model, and far below where sizes in bytes would leave 64 bits.
constexpr std::int64_t most_layers = 4096;
constexpr double most_elements = 0x1p50;

/// Parameters and what one micro-batch keeps for backward, about; in double, which cannot overflow.
double about_elements(const Extents& c, double ffn, const BatchShape& shape) {
  const auto layers = static_cast<double>(c.layers), width = static_cast<double>(c.width);
  const double vocab = static_cast<double>(c.vocab_size), positions = static_cast<double>(c.max_seq_len);
  const double rows = static_cast<double>(shape.batch) * static_cast<double>(shape.seq);
  const double parameters = layers * (4 * width * width + 2 * width * ffn) + (2 * vocab + positions) * width;
  return parameters + rows * (layers * (10 * width + 2 * ffn + static_cast<double>(c.heads)) + 2 * vocab);
}

}  // namespace

void check_positive(std::string_view key, std::int64_t value, std::vector<std::string>& found) {
  if (value < 1) found.push_back(fmt::format("{} is {}, expected at least 1", key, value));
}

double check_inner_width(std::int64_t width, std::int64_t ffn_width, std::vector<std::string>& found) {
  if (ffn_width < 0) found.push_back(fmt::format("model.ffn_width is {}, expected 0 (4 × width) or more", ffn_width));
  return ffn_width > 0 ? static_cast<double>(ffn_width) : 4 * static_cast<double>(width);
}

void check_extents(const Extents& c, const BatchShape& shape, std::vector<std::string>& found) {
  check_positive("model.layers", c.layers, found);
  check_positive("model.width", c.width, found);
  check_positive("model.heads", c.heads, found);
  check_positive("model.vocab_size", c.vocab_size, found);
  check_positive("model.max_seq_len", c.max_seq_len, found);
  check_positive("train.seq_len", shape.seq, found);
  check_positive("train.local_batch_size", shape.batch, found);
  if (shape.seq > c.max_seq_len)
    found.push_back(fmt::format("train.seq_len is {}, but the model has {} positions (model.max_seq_len)", shape.seq,
                                c.max_seq_len));
}

void check_head_division(std::int64_t width, std::int64_t heads, std::vector<std::string>& found) {
  if (heads > 0 && width % heads != 0)
    found.push_back(fmt::format(
        "model.heads is {}, which does not divide model.width {}; heads of {} would be {} wide, the remainder is {}",
        heads, width, heads, width / heads, width % heads));
}

void check_elements(const Extents& c, double ffn_width, const BatchShape& shape, std::vector<std::string>& found) {
  if (c.layers > most_layers)
    found.push_back(fmt::format("model.layers is {}, expected at most {}", c.layers, most_layers));
  const double elements = about_elements(c, ffn_width, shape);
  if (elements > most_elements)
    found.push_back(
        fmt::format("the model and a micro-batch of {} sequences of {} tokens would have about {:.3g} numbers, "
                    "expected at most {:.3g}; look at model.* and train.local_batch_size",
                    shape.batch, shape.seq, elements, most_elements));
}

}  // namespace foreshard::model
