#include "train/nonfinite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

namespace foreshard::train {
namespace {

/// The first element of a parameter's gradient, on one rank, that is not finite.
struct GradientFault {
  std::int64_t parameter = -1, element = 0, rank = 0;
  double value = 0;
};
struct LossFault {
  std::int64_t rank = 0, micro_batch = -1, row = -1, token = -1;
};

/// What one rank found; plain bytes, to be gathered.
struct Findings {
  LossFault loss;
  std::vector<GradientFault> gradients;
};

template <class T>
void search(const plan::FlatParameter& flat, int rank, const T* shard, std::vector<GradientFault>& found) {
  for (const plan::ShardPart& part : plan::parts_of_shard(flat, rank)) {
    if (!part.piece->updated()) continue;
    const T* const begin = shard + part.at;
    const T* const bad = std::find_if(begin, begin + part.count, [](T value) { return !std::isfinite(value); });
    if (bad == begin + part.count) continue;
    found.push_back({part.piece->parameter.value, part.first + (bad - begin), rank, static_cast<double>(*bad)});
  }
}

std::vector<GradientFault> gradient_faults(TrainingRank& rank, std::int64_t step, int index) {
  std::vector<GradientFault> found;
  const plan::Plan& plan = rank.plan_of(step);
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) {
    rank.read(rank.gradient_shard(unit), [&](std::span<const std::byte> bytes) {
      const void* shard = bytes.data();
      plan.dtype == DType::f64 ? search(plan.units[unit], index, static_cast<const double*>(shard), found)
                               : search(plan.units[unit], index, static_cast<const float*>(shard), found);
    });
  }
  return found;
}

LossFault loss_fault(const TrainingRank& rank, int index, const Batch& batch) {
  const engine::LossFault fault = rank.loss_fault();
  LossFault found{index, fault.micro_batch, fault.row};
  const std::int64_t first = rank.plan().micro_batch_tokens * fault.micro_batch;
  if (fault.row >= 0 && !batch.tokens.empty()) found.token = batch.tokens[static_cast<std::size_t>(first + fault.row)];
  return found;
}

std::vector<std::byte> packed(const Findings& findings) {
  const auto loss = std::as_bytes(std::span(&findings.loss, 1));
  const auto gradients = std::as_bytes(std::span(findings.gradients));
  std::vector<std::byte> bytes(loss.begin(), loss.end());
  bytes.insert(bytes.end(), gradients.begin(), gradients.end());
  return bytes;
}

Findings unpacked(const std::vector<std::byte>& bytes) {
  Findings findings;
  std::memcpy(&findings.loss, bytes.data(), sizeof(LossFault));
  findings.gradients.resize((bytes.size() - sizeof(LossFault)) / sizeof(GradientFault));
  if (!findings.gradients.empty())
    std::memcpy(findings.gradients.data(), bytes.data() + sizeof(LossFault), bytes.size() - sizeof(LossFault));
  return findings;
}

std::string loss_text(const std::vector<Findings>& all, std::int64_t seq) {
  std::vector<LossFault> faults;
  for (const Findings& findings : all)
    if (findings.loss.micro_batch >= 0) faults.push_back(findings.loss);
  if (faults.empty()) return "the loss is finite on every rank";
  const LossFault& f = faults.front();
  std::string text = fmt::format("the loss of rank {} in micro-batch {}", f.rank, f.micro_batch);
  if (f.row >= 0 && f.token < 0) text += fmt::format(" (image {})", f.row);
  if (f.row >= 0 && f.token >= 0)
    text += fmt::format(" (sequence {}, position {}, token {})", f.row / seq, f.row % seq, f.token);
  if (faults.size() > 1) text += fmt::format(" and of {} more rank(s)", faults.size() - 1);
  return text + " is not finite";
}

/// The parameter nearest to the loss: graphs list parameters in the order in which forward uses them.
std::string gradient_text(const std::vector<Findings>& all, const model::Graph& graph) {
  std::vector<GradientFault> faults;
  for (const Findings& findings : all)
    faults.insert(faults.end(), findings.gradients.begin(), findings.gradients.end());
  if (faults.empty()) return "every element of the gradient is finite, but its norm is not";
  std::ranges::sort(faults, [](const GradientFault& a, const GradientFault& b) {
    return std::tuple(-a.parameter, a.element, a.rank) < std::tuple(-b.parameter, b.element, b.rank);
  });
  const GradientFault nearest = faults.front();
  const auto [rest, end] = std::ranges::unique(faults, {}, &GradientFault::parameter);
  const auto parameters = rest - faults.begin();
  std::string text = fmt::format("the gradient of {} at element {} is {} (held by rank {})",
                                 graph.parameters[static_cast<std::size_t>(nearest.parameter)].name, nearest.element,
                                 nearest.value, nearest.rank);
  return parameters > 1 ? text + fmt::format(", and {} more parameter(s) are affected", parameters - 1) : text;
}

}  // namespace

std::string explain_nonfinite(comm::Communicator& communicator, TrainingRank& rank, std::int64_t step,
                              const Batch& batch) {
  const int index = communicator.rank();
  const auto gathered =
      communicator.gather(packed({loss_fault(rank, index, batch), gradient_faults(rank, step, index)}));
  if (gathered.empty()) return "";
  std::vector<Findings> all;
  for (const auto& bytes : gathered) all.push_back(unpacked(bytes));
  return loss_text(all, rank.graph().seq) + "; " + gradient_text(all, rank.graph());
}

}  // namespace foreshard::train
