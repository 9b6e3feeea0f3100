#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "rehearsal/emulation/kernel.hpp"
#include "rehearsal/emulation/sanitizer.hpp"
#include "rehearsal/runtime/memory.hpp"

/// Says who used which wrong address, before whatever happens on such a fault happens.
namespace rehearsal {
namespace {

struct sigaction before;

std::string message(const void* address) {
  const std::string who = place();
  return fmt::format("rehearsal: {} used address {}: {}\n", who.empty() ? "the host" : who, address,
                     Memory::instance().describe(address));
}

void on_fault(int, siginfo_t* info, void*) {
  sigaction(SIGSEGV, &before, nullptr);  // returns to the instruction, which faults again
  const std::string text = message(info->si_addr);
  const auto written = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

/// Not under the thread sanitizer, which takes the handler's words for an error of their own. On the signal's own stack
/// if the thread has one: the fault may be a kernel's that ran out of its own.
const bool installed = [] {
  if (sanitizer::checks_races) return false;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return sigaction(SIGSEGV, &action, &before) == 0;
}();

}  // namespace
}  // namespace rehearsal
