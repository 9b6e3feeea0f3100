#include "rehearsal/runtime/state.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "rehearsal/runtime/job.hpp"
#include "rehearsal/runtime/memory.hpp"

namespace rehearsal {

std::atomic<int> live_streams, live_events, live_graphs, live_communicators;

namespace {

struct Fault {
  int left = 0;
  int error = 0;
};

struct State {
  std::mutex mutex;
  std::map<std::string, Fault, std::less<>> faults;
  std::vector<std::string> reports;
  std::atomic<int> devices = static_cast<int>(job().devices.size());
  std::atomic<std::uint64_t> seed = 1, delay_seed = 0;
  std::atomic<int> most_microseconds = 0;
  std::atomic<bool> has_faults = false;
  std::function<void(int, const std::string&)> watch;
  std::atomic<cudaError_t> errors[most_devices] = {};
};

State& state() {
  static auto* all = new State;
  return *all;
}

constinit thread_local int device_of_thread = 0;
constinit thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

void reset(int devices, std::size_t bytes) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  all.devices = devices;
  all.faults.clear();
  all.has_faults = false;
  all.watch = {};
  all.reports.clear();
  all.most_microseconds = 0;
  all.seed = 1;
  for (auto& error : all.errors) error = cudaSuccess;
  device_of_thread = 0;
  last_error = cudaSuccess;
  Memory::instance().set_total(bytes);
}

void fail_call(const std::string& name, int nth, int error) {
  const std::lock_guard lock(state().mutex);
  state().faults[name] = {nth, error};
  state().has_faults = true;
}
void delay_streams(std::uint64_t seed, int most_microseconds) {
  state().delay_seed = seed;
  state().most_microseconds = most_microseconds;
}
void watch_work(std::function<void(int, const std::string&)> watch) { state().watch = std::move(watch); }
void watched(const std::function<std::string()>& work) {
  if (state().watch) state().watch(current_device(), work());
}
void shuffle(std::uint64_t seed) { state().seed = seed; }
std::vector<std::string> reports() {
  const std::lock_guard lock(state().mutex);
  return state().reports;
}
Live live() { return {Memory::instance().live(), live_streams, live_events, live_graphs, live_communicators}; }

int devices() { return state().devices; }
int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

void report(const std::string& text) {
  const std::lock_guard lock(state().mutex);
  state().reports.push_back(text);
  fmt::print(stderr, "rehearsal: {}\n", text);
}

int injected(const char* name) {
  if (!state().has_faults) return 0;
  const std::lock_guard lock(state().mutex);
  const auto found = state().faults.find(std::string_view(name));
  return found != state().faults.end() && --found->second.left == 0 ? found->second.error : 0;
}

void sleep_at_random(std::uint64_t stream) {
  const int most = state().most_microseconds;
  if (most == 0) return;
  static thread_local std::mt19937_64 random(state().delay_seed + stream);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(most + 1)));
}
std::uint64_t next_seed() { return state().seed.fetch_add(0x9E3779B97F4A7C15U); }

cudaError_t error_of(int device) { return state().errors[device]; }
void fail_device(int device, cudaError_t error) {
  cudaError_t none = cudaSuccess;
  state().errors[device].compare_exchange_strong(none, error);
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaGetLastError() {
  const cudaError_t sticky = error_of(current_device()), error = sticky != cudaSuccess ? sticky : last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  const cudaError_t sticky = error_of(current_device());
  return sticky != cudaSuccess ? sticky : last_error;
}
}
