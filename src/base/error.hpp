#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace foreshard {

/// Exit codes of every command. Kept below 125 so that mpirun passes them through.
enum class ExitCode : int {
  done = 0,
  runtime_failure = 1,
  usage = 2,       ///< usage or configuration, found before MPI starts
  infeasible = 3,  ///< no plan fits
  outside = 4,     ///< a comparison or self-check is outside its tolerance
  bad_input = 5,   ///< an input file is unreadable or has the wrong format
  stalled = 6,     ///< the watchdog ended a run that no longer moved
  requeue = 75,    ///< a checkpoint was written after a signal: start me again
};

/// The user's mistake. The message says what is wrong, the value seen, what was expected and what to do.
class InputError : public std::runtime_error {
 public:
  InputError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// What users can do where memory does not suffice.
constexpr std::string_view what_needs_less_memory =
    "take fewer rows (train.local_batch_size), recompute (activation_checkpoint.mode=full), shard over more ranks or "
    "offload; foreshard-plan predicts memory";

/// A library call that failed. The message says which call, on what, where, and what the library answered.
class LibraryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A broken contract: our own bug.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void broken_contract(const char* condition, const char* file, int line, std::string_view message);

}  // namespace foreshard

/// Checks a contract in every build; `message` is evaluated only when the condition is false.
#define FORESHARD_EXPECT(condition, message) \
  ((condition) ? void(0) : ::foreshard::broken_contract(#condition, __FILE__, __LINE__, (message)))
