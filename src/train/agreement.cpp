#include "train/agreement.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "plan/print.hpp"

namespace foreshard::train {
namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Something that all ranks must have alike.
struct Shared {
  std::string name;
  std::uint64_t hash = 0;
  std::function<std::string()> text;  ///< in lines
  ExitCode code = ExitCode::runtime_failure;
};

std::string first_difference(const std::string& a, const std::string& b, int rank_b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string line_a, line_b;
  while (std::getline(lines_a, line_a) && std::getline(lines_b, line_b) && line_a == line_b) {
  }
  return fmt::format("the first difference:\n  rank 0: {}\n  rank {}: {}", line_a, rank_b, line_b);
}

/// On rank 0 the first difference in words, elsewhere where to find it.
std::string explain(comm::Communicator& communicator, const Shared& shared, int other) {
  const std::string mine = shared.text();
  const auto texts = communicator.gather(std::as_bytes(std::span(mine)));
  if (texts.empty()) return "rank 0 says where";
  return first_difference(mine, text_of(texts[static_cast<std::size_t>(other)]), other);
}

void expect_same(comm::Communicator& communicator, const Shared& shared) {
  const auto hashes = communicator.all_gather_u64(shared.hash);
  std::vector<int> others;
  for (std::size_t rank = 1; rank < hashes.size(); ++rank)
    if (hashes[rank] != hashes[0]) others.push_back(static_cast<int>(rank));
  if (others.empty()) return;
  throw InputError(shared.code,
                   fmt::format("ranks do not have the same {}: rank(s) {} differ from rank 0; {}\n"
                               "give every rank the same configuration and the same build",
                               shared.name, fmt::join(others, ", "), explain(communicator, shared, others.front())));
}

std::string parameters_text(const model::Graph& graph) {
  std::string text;
  for (const model::Parameter& p : graph.parameters)
    text += fmt::format("{} [{}] in unit {}\n", p.name, fmt::join(p.shape, ", "), graph.units[p.unit.value].name);
  return text;
}

/// Keys of which a rank may have its own, since only it, or only rank 0, looks at them.
bool is_own(std::string_view key) {
  constexpr std::string_view own[] = {"run.dir", "run.name", "engine.threads", "metrics.log_freq"};
  return std::ranges::find(own, key) != std::end(own);
}

std::string config_text(const Config& config) {
  std::string text;
  const nlohmann::json keys = config.to_json().flatten();
  for (const auto& [path, value] : keys.items()) {
    std::string key = path.substr(1);
    std::ranges::replace(key, '/', '.');
    if (!is_own(key)) text += fmt::format("{} = {}\n", key, json_text(value, -1));
  }
  return text;
}

std::uint64_t hash_of(const std::string& text) { return Hash().add(text).value(); }

}  // namespace

void expect_same_plan(comm::Communicator& communicator, const plan::Plan& plan) {
  expect_same(communicator, {"plan", plan::hash_of(plan), [&] { return plan::plan_text(plan); }});
}

void expect_same_parameters(comm::Communicator& communicator, const model::Graph& graph) {
  const std::string text = parameters_text(graph);
  expect_same(communicator, {"parameters", hash_of(text), [&] { return text; }});
}

void expect_same_config(comm::Communicator& communicator, const Config& config) {
  const std::string text = config_text(config);
  expect_same(communicator, {"configuration", hash_of(text), [&] { return text; }, ExitCode::usage});
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
