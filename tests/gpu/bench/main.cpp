// gpu_bench FOLDER [PART...]: what one CUDA device does, for tests/gpu/table.py: rates that others are measured
// against, every kernel, and training steps. Parts are rates, kernels, attention, gpt2 and gpt2-xl; all by default.
// Writes FOLDER/bench.json, anew after each part, so that what was measured stays if time runs out, and a trace of one
// step of each model. A part that fails is told about, and the others go on; the exit code is 1 then, and 77 without a
// device.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/run_main.hpp"
#include "kernel_times.hpp"
#include "kernels/cuda/check.hpp"
#include "step_times.hpp"

namespace {

using namespace foreshard;
using namespace foreshard::gpu_bench;

constexpr int without_device = 77;

nlohmann::json described_device() {
  cudaDeviceProp properties{};
  int runtime = 0, driver = 0;
  kernels::cuda::check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  kernels::cuda::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  kernels::cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  return {{"name", properties.name},
          {"multiprocessors", properties.multiProcessorCount},
          {"memory_bytes", properties.totalGlobalMem},
          {"runtime", runtime},
          {"driver", driver}};
}

class Bench {
 public:
  explicit Bench(std::string folder) : folder_(std::move(folder)) { result_["device"] = described_device(); }

  void part(const std::string& name) {
    const std::int64_t began_ns = now_ns();
    try {
      run(name);
    } catch (const std::exception& error) {
      ++failed_;
      result_["failed"][name] = error.what();
      log_warn("{}: {}", name, error.what());
    }
    result_["seconds"][name] = static_cast<double>(now_ns() - began_ns) * 1e-9;
    std::ofstream(folder_ + "/bench.json") << result_.dump(1) << "\n";
  }
  int failed() const { return failed_; }

 private:
  void run(const std::string& name) {
    if (name == "gpt2") return step({.preset = name, .rows = 32, .steps = 30, .also_by_op = true});
    if (name == "gpt2-xl") return step({.preset = name, .rows = 16, .steps = 10});
    Device device;
    if (name == "rates") result_["reference"] = reference_rates(device);
    if (name == "kernels") result_["kernels"] = memory_bound_kernels(device);
    if (name == "attention") result_["attention"] = attention_kernels(device);
  }
  void step(const Job& job) { result_["steps"].push_back(step_times(job, folder_ + "/trace_" + job.preset + ".h5")); }

  std::string folder_;
  nlohmann::json result_;
  int failed_ = 0;
};

int run(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "gpu_bench FOLDER [rates] [kernels] [attention] [gpt2] [gpt2-xl]\n");
    return 2;
  }
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
    fmt::print("gpu_bench: skipped: no CUDA device is visible ({})\n",
               error == cudaSuccess ? "0 devices" : cudaGetErrorString(error));
    return without_device;
  }
  Bench bench(argv[1]);
  std::vector<std::string> parts(argv + 2, argv + argc);
  if (parts.empty()) parts = {"rates", "kernels", "attention", "gpt2", "gpt2-xl"};
  for (const std::string& part : parts) bench.part(part);
  return bench.failed() > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return foreshard::run_main("gpu_bench", [&] { return run(argc, argv); });
}
