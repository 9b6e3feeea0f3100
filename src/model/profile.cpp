#include "model/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "model/graph_builder.hpp"

namespace foreshard::model {
namespace {

constexpr std::size_t most_units = 4096, most_shown = 10;
constexpr double most_numbers = 0x1p50, most_flops = 1e18;

class ProfileBuilder : GraphBuilder {
 public:
  ProfileBuilder(const ProfileConfig& config, std::int64_t samples, DType dtype)
      : GraphBuilder({samples, 1}, dtype), c_(config) {}

  Graph build() {
    TensorId x = TensorId::none();
    for (const ProfiledUnit& unit : c_.units) {
      begin_unit(fmt::format("u{}", units_++));
      x = opaque(unit, x);
    }
    return_to_root();
    cross_entropy(opaque(c_.head, x), c_.head.output_values);
    return take();
  }

 private:
  TensorId opaque(const ProfiledUnit& unit, TensorId x) {
    const TensorId weight =
        unit.parameters > 0 ? parameter(unit.name + ".weight", {unit.parameters}, {.stddev = 0.02}) : TensorId::none();
    const TensorId y = activation(rows() * unit.output_values);
    std::vector<TensorId> results{y};
    if (unit.activation_bytes > 0) results.push_back(activation(rows() * ((unit.activation_bytes + 3) / 4)));
    op(unit.name, OpKind::opaque,
       {.rows = rows(), .cols = unit.output_values, .inner = unit.forward_flops, .seq = unit.backward_flops},
       {x, weight}, std::move(results), static_cast<float>(c_.part_of_peak));
    return y;
  }

  const ProfileConfig& c_;
  int units_ = 0;
};

void check(const ProfiledUnit& unit, double samples, std::vector<std::string>& found) {
  const double numbers = static_cast<double>(unit.parameters) + samples * (static_cast<double>(unit.activation_bytes) +
                                                                           static_cast<double>(unit.output_values));
  if (unit.parameters < 0 || unit.activation_bytes < 0 || unit.output_values < 1 || numbers > most_numbers)
    found.push_back(
        fmt::format("{} has {} parameters, keeps {} bytes and hands on {} values a sample; expected none "
                    "below zero, one value or more, and at most {:.3g} in all",
                    unit.name, unit.parameters, unit.activation_bytes, unit.output_values, most_numbers));
  const double flops = samples * static_cast<double>(std::max(unit.forward_flops, unit.backward_flops));
  if (unit.forward_flops < 0 || unit.backward_flops < 0 || flops > most_flops)
    found.push_back(
        fmt::format("{} computes {} and {} FLOPs a sample; expected 0 or more, at most {:.3g} for all of a "
                    "micro-batch",
                    unit.name, unit.forward_flops, unit.backward_flops, most_flops));
}

}  // namespace

std::vector<std::string> problems(const ProfileConfig& c, const BatchShape& shape) {
  std::vector<std::string> found;
  if (shape.batch < 1) found.push_back(fmt::format("train.local_batch_size is {}, expected at least 1", shape.batch));
  if (c.units.empty() || c.units.size() > most_units)
    found.push_back(fmt::format("the profile has {} units, expected 1 to {}", c.units.size(), most_units));
  for (const ProfiledUnit& unit : c.units)
    if (found.size() < most_shown) check(unit, static_cast<double>(shape.batch), found);
  check(c.head, static_cast<double>(shape.batch), found);
  if (!(c.part_of_peak > 0 && c.part_of_peak <= 1))
    found.push_back(fmt::format("part_of_peak is {}, expected more than 0 and at most 1", c.part_of_peak));
  return found;
}

Graph build_profile(const ProfileConfig& config, const BatchShape& shape, DType dtype) {
  FORESHARD_EXPECT(problems(config, shape).empty(), problems(config, shape).front());
  return ProfileBuilder(config, shape.batch, dtype).build();
}

}  // namespace foreshard::model
