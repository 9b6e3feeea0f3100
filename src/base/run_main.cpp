#include "base/run_main.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/version.hpp"

namespace foreshard {

namespace {

struct Failure {
  std::string what, remedy;
  ExitCode code = ExitCode::runtime_failure;
};

std::string indented(std::string_view text, std::string_view indent) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += indent;
  }
  return result;
}

void print(std::string_view program, const Failure& failure) {
  const std::string block = fmt::format("{}: error: {}\n  where:  rank {} on {}, exit code {}\n  remedy: {}\n", program,
                                        indented(failure.what, "  "), launch_rank(), host_name(),
                                        static_cast<int>(failure.code), failure.remedy);
  std::fwrite(block.data(), 1, block.size(), stderr);
  std::fflush(stderr);
}

std::string remedy_for(ExitCode code, std::string_view program) {
  switch (code) {
    case ExitCode::usage:
      return fmt::format("correct the above; `{} --help` lists every option", program);
    case ExitCode::infeasible:
      return "ask for less, as said above";
    case ExitCode::bad_input:
      return "correct or make the file again, as said above";
    case ExitCode::stalled:
      return "look for a stopped or dead process, a full disk or a slow node; allow more time with engine.watchdog_s";
    default:
      return "as said above";
  }
}

Failure failure_of_current_exception(std::string_view program) {
  try {
    throw;
  } catch (const InputError& error) {
    return {error.what(), remedy_for(error.code(), program), error.code()};
  } catch (const LibraryError& error) {
    return {error.what(), "check the machine: disk, memory, network and the library named above"};
  } catch (const ContractError& error) {
    return {error.what(), "this is a fault of Foreshard: please report it with the command line and `--version`"};
  } catch (const std::bad_alloc&) {
    return {"out of memory", "use a smaller model or batch, or more ranks"};
  } catch (const std::system_error& error) {
    return {fmt::format("the system refused: {}", error.what()),
            "look for a full disk, or for rights that are missing"};
  } catch (const std::exception& error) {
    return {error.what(), "please report it with the command line and `--version`"};
  } catch (...) {
    return {"unknown exception", "please report it with the command line and `--version`"};
  }
}

constexpr std::chrono::seconds head_start{2};

/// What all ranks see alike, the first prints, and the launcher ends all. The others wait for that, so that it stands
/// there once; one that is still there after it has seen what the first has not.
void report(std::string_view program, const Failure& failure) {
  if (failure.code == ExitCode::usage && launch_rank() != 0) std::this_thread::sleep_for(head_start);
  print(program, failure);
}

}  // namespace

namespace {

/// A full disk behind stdout shows only when what was printed is flushed.
void expect_printed() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw LibraryError("what was printed could not be written: is the disk full that stdout goes to?");
}

}  // namespace

int run_main(std::string_view program, const std::function<int()>& body, const std::function<void(int)>& on_failure) {
  try {
    const int code = body();
    expect_printed();
    return code;
  } catch (...) {
    const Failure failure = failure_of_current_exception(program);
    const int code = static_cast<int>(failure.code);
    report(program, failure);
    if (on_failure) on_failure(code);
    return code;
  }
}

bool answered(const Config& config) {
  if (!config.help_wanted() && !config.version_wanted()) return false;
  if (launch_rank() != 0) return true;
  const bool json = config.has("json") && config.get<bool>("json");
  const std::string text = config.help_wanted() ? config.help() : json ? version_json() + "\n" : version_text();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return true;
}

}  // namespace foreshard
