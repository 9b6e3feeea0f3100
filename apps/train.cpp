// foreshard-train: trains a language model with fully sharded data parallelism on the ranks of an MPI job.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_main.hpp"
#include "comm/mpi_communicator.hpp"
#include "train/start_guard.hpp"
#include "train/trainer.hpp"

namespace {

using namespace foreshard;

Config make_config() {
  Config config("foreshard-train",
                "Trains a language model with fully sharded data parallelism, one rank per MPI process.");
  config.example(
      "mpirun -n 2 foreshard-train --model.preset=byte-small --data.path='data/text_train.bin' --train.steps=200");
  config.example("srun -n 16 foreshard-train --config job.ini --parallel.strategy=full_shard");
  plan::add_plan_keys(config);
  train::add_train_keys(config);
  config.ignore({"parallel.world_size", "machine.", "runtime.", "torch.", "deepspeed.", "search."});
  return config;
}

/// Ranks of the job as the launcher says before MPI starts, and the variable in which it says so; 1 if it says nothing.
struct Announced {
  int ranks = 1;
  const char* variable = "no variable of a launcher";
};

Announced announced_world_size() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* value = std::getenv(name)) return {std::max(1, std::atoi(value)), name};
  return {};
}

void expect_world_size(const Announced& announced, int real) {
  if (announced.ranks == real) return;
  const std::string_view consequence = real == 1 ? "each process would train alone" : "the plan would not fit";
  throw InputError(ExitCode::usage,
                   fmt::format("the launcher announces {} ranks ({}), but MPI has {}: {}; start with the mpirun of the "
                               "MPI that this was built with, or with srun --mpi=pmix",
                               announced.ranks, announced.variable, real, consequence));
}

constexpr int start_up = 12;  ///< as long as the watchdog gives it, times its deadline

/// One rank failing ends all: the first failing lane prints why, then the job is aborted.
void end_job(std::exception_ptr error) {
  std::exit(run_main(
      "foreshard-train", [&]() -> int { std::rethrow_exception(error); },
      [](int code) { comm::MpiSession::abort(code); }));
}

int run(int argc, char** argv) {
  Config config = make_config();
  config.parse(argc, argv);
  if (answered(config)) return 0;
  const Announced announced = announced_world_size();
  plan::Settings plan_settings = plan::read_settings(config, announced.ranks);
  for (const std::string& note : plan_settings.model_source.notes) log_info("note         {}", note);
  const train::TrainSettings train_settings = train::read_train_settings(config);
  if (train_settings.on_cuda) plan_settings = plan_settings.on_cuda();
  train::expect_kernels_exist(plan_settings);
  if (train_settings.on_cuda) train::expect_fits_devices(plan_settings);
  train::expect_groups_match(train_settings, plan_settings);

  const std::atomic<bool>& stop_requested = train::catch_stop_signal();
  const std::vector<std::string> command_line(argv, argv + argc);
  std::optional<train::StartGuard> guard;
  guard.emplace("the start of MPI", std::chrono::duration<double>(train_settings.watchdog_s), end_job);
  const comm::MpiSession mpi(argc, argv);
  const auto communicator = comm::make_mpi({.shared_memory = config.get<std::string>("comm.backend") != "messages"});
  set_log_rank(communicator->rank());
  log_info("mpi          thread level {}", mpi.thread_level());
  expect_world_size(announced, communicator->size());
  guard.emplace("start-up", start_up * std::chrono::duration<double>(train_settings.watchdog_s), end_job);
  train::Trainer trainer(config, plan_settings, train_settings, *communicator, command_line, end_job, stop_requested);
  guard.reset();
  return static_cast<int>(trainer.run());
}

}  // namespace

int main(int argc, char** argv) {
  return foreshard::run_main(
      "foreshard-train", [&] { return run(argc, argv); }, [](int code) { foreshard::comm::MpiSession::abort(code); });
}
