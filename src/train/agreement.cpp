#include "train/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "plan/print.hpp"

namespace foreshard::train {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string line_a, line_b;
  while (std::getline(lines_a, line_a) && std::getline(lines_b, line_b) && line_a == line_b) {
  }
  return fmt::format("  rank 0:      {}\n  that rank:   {}", line_a, line_b);
}

/// On rank 0 the first difference in words, elsewhere nothing.
std::string explain(comm::Communicator& communicator, const plan::Plan& plan, int other) {
  const std::string mine = plan::plan_text(plan);
  const auto texts = communicator.gather(std::as_bytes(std::span(mine)));
  if (texts.empty()) return "  rank 0 says which";
  return first_difference(mine, text_of(texts[static_cast<std::size_t>(other)]));
}

}  // namespace

void expect_same_plan(comm::Communicator& communicator, const plan::Plan& plan) {
  const auto hashes = communicator.all_gather_u64(plan::hash_of(plan));
  std::vector<int> others;
  for (std::size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0]) others.push_back(static_cast<int>(rank));
  if (others.empty()) return;
  throw InputError(ExitCode::runtime_failure,
                   fmt::format("ranks would not run the same plan: rank(s) {} differ from rank 0; the first op that "
                               "differs on rank {}:\n{}\n  give every rank "
                               "the same configuration and the same build",
                               fmt::join(others, ", "), others.front(), explain(communicator, plan, others.front())));
}

void together(comm::Communicator& communicator, const std::function<void()>& action) {
  std::exception_ptr error;
  try {
    action();
  } catch (...) {
    error = std::current_exception();
  }
  const auto failed = communicator.all_gather_u64(error ? 1 : 0);
  const auto first = std::ranges::find(failed, 1U);
  if (first == failed.end()) return;
  if (first - failed.begin() == communicator.rank()) std::rethrow_exception(error);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  throw LibraryError(fmt::format("rank {} failed and did not end the run", first - failed.begin()));
}

std::string text_of_rank_0(comm::Communicator& communicator, std::string text) {
  std::uint64_t size = text.size();
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  text.resize(size);
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

}  // namespace foreshard::train
