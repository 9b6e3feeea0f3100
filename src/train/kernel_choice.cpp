#include "train/kernel_choice.hpp"

#include <algorithm>

#include "base/log.hpp"
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
  if (usable_on_all(communicator, choices, engine)) return choices;
  if (communicator.rank() == 0) log_warn("ranks have different devices or libraries: no kernels are chosen for them");
  return {};
}

bool usable_on_all(comm::Communicator& communicator, const KernelChoices& choices, const engine::Engine& engine) {
  const auto answers = communicator.all_gather_u64(engine.can_use(choices) ? 1 : 0);
  return std::ranges::all_of(answers, [](std::uint64_t answer) { return answer == 1; });
}

}  // namespace foreshard::train
