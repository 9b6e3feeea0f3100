#include "train/kernel_choice.hpp"

#include "base/text.hpp"
#include "train/agreement.hpp"

namespace foreshard::train {
namespace {

/// One "name=choice" a line.
std::string lines_of(const KernelChoices& choices) {
  std::string lines;
  for (const auto& [name, choice] : choices) lines += name + "=" + choice + "\n";
  return lines;
}

}  // namespace

KernelChoices choose_kernels(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine) {
  const std::string lines =
      text_of_rank_0(communicator, communicator.rank() == 0 ? lines_of(engine.measure_kernels(plan)) : std::string());
  KernelChoices choices;
  for (const std::string_view line : split(lines, '\n'))
    if (const std::size_t sign = line.find('='); sign != std::string_view::npos)
      choices.emplace(line.substr(0, sign), line.substr(sign + 1));
  return choices;
}

}  // namespace foreshard::train
