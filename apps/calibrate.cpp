// foreshard-calibrate: measures this machine and writes the machine file that foreshard-plan predicts with.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include "apps/calibrate/collective_times.hpp"
#include "apps/calibrate/gpu_times.hpp"
#include "apps/calibrate/kernel_times.hpp"
#include "apps/calibrate/local_ranks.hpp"
#include "apps/calibrate/network_times.hpp"
#include "apps/calibrate/process.hpp"
#include "base/config.hpp"
#include "base/error.hpp"
#include "base/run_main.hpp"
#include "comm/mpi_communicator.hpp"
#include "sim/machine.hpp"

namespace {

using namespace foreshard;

Config keys() {
  Config config("foreshard-calibrate", "Measures this machine for foreshard-plan: kernels, collectives, memory.");
  config.example("foreshard-calibrate --out machine.json");
  config.example("mpirun -n 2 foreshard-calibrate --out machine.json    # collectives of 2 ranks through MPI");
  config.add("out", "machine.json", "file to write");
  config.example("mpirun --map-by ppr:1:node foreshard-calibrate     # and the network between the nodes");
  config.example("mpirun -n 8 foreshard-calibrate --device=cuda --out gpu.json    # GPUs, a rank for each, and NCCL");
  config.add("device", "cpu", "what is measured: processor cores, or CUDA devices", {.choices = {"cpu", "cuda"}});
  config.add("quick", false, "fewer and smaller sizes");
  config.add("cores", 0, "cores of a node, the first of those this process may use; 0 = all of the machine",
             {.min = 0, .max = 1 << 16});
  return config;
}

/// Rank counts measured with threads: one, all cores, and twice as many as cores; `by_mpi` is measured otherwise.
std::set<int> local_rank_counts(int cores, int by_mpi) {
  std::set<int> counts{1, 2, cores, 2 * cores};
  counts.erase(by_mpi);
  return counts;
}

/// Every node measures itself at the same time, and rank 0 speaks for all.
using calibrate::Say;

Say voice_of(int rank) {
  if (rank != 0) return [](const std::string&) {};
  return [](const std::string& what) { fmt::print(stderr, "measuring {}\n", what); };
}

/// Everything that threads of one process can measure.
void measure_alone(sim::Machine& machine, bool quick, int by_mpi, const Say& say) {
  for (const int busy : std::set<int>{1, machine.cores}) {
    say(fmt::format("kernels, {} at once", busy));
    calibrate::measure_kernels(machine, busy, quick);
  }
  say("the team of all cores");
  calibrate::measure_team(machine);
  say("the time between ops");
  for (const int ranks : std::set<int>{1, std::max(2, machine.cores)}) calibrate::measure_handovers(machine, ranks);
  for (const int ranks : local_rank_counts(machine.cores, by_mpi)) {
    say(fmt::format("collectives of {} ranks", ranks));
    calibrate::run_local_ranks(
        ranks, [&](comm::Communicator& communicator) { calibrate::measure_collectives(machine, communicator, quick); });
  }
}

/// The shortest kernel of all.
void set_floor(sim::Machine& machine) {
  double least = 1;
  for (const sim::KernelTable& table : machine.kernels)
    for (const sim::KernelPoint& point : table.points) least = std::min(least, point.seconds);
  machine.kernel_floor_s = {least, "measured: the shortest kernel of all"};
}

void write(const sim::Machine& machine, const std::string& path) {
  std::ofstream out(path);
  if (!(out << sim::to_json(machine)) || !out.flush())
    throw InputError(ExitCode::bad_input,
                     fmt::format("--out {}: cannot be written; name a file in a folder that exists", path));
}

sim::Machine begin(int cores) {
  if (cores == 0) calibrate::use_all_cores();
  sim::Machine machine = sim::generic_machine(cores > 0 ? cores : calibrate::online_cores());
  machine.name = calibrate::processor_name();
  machine.date = calibrate::today();
  machine.kernels.clear();
  machine.collectives.clear();
  return machine;
}

/// What takes several processes.
void measure_together(sim::Machine& machine, comm::Communicator& world, std::span<const int> neighbours, bool quick,
                      const Say& say) {
  const int ranks = world.node_size();
  const bool one_node = world.size() == ranks;
  if (ranks > 1) say(fmt::format("collectives of {} ranks through MPI", ranks));
  if (ranks > 1) calibrate::measure_collectives(machine, world, neighbours, quick);
  if (one_node && ranks > 1 && ranks <= machine.cores) calibrate::measure_update(machine, ranks);
  if (one_node) return;
  say("the network between nodes");
  calibrate::measure_network(machine, *comm::make_mpi(), quick);
}

void measure_cores(sim::Machine& machine, comm::Communicator& world, bool quick, const Say& say) {
  const int by_mpi = world.node_size() > 1 ? world.node_size() : 0;
  const auto neighbours = calibrate::ranks_of_this_node(world);
  say("the process");
  if (world.size() > 1 && world.size() == world.node_size())
    calibrate::measure_process(machine, *comm::make_mpi());
  else if (world.node_rank() == 0)
    calibrate::measure_process(machine);
  if (world.node_rank() == 0) measure_alone(machine, quick, by_mpi, say);
  world.barrier();  // asleep
  measure_together(machine, world, neighbours, quick, say);
  if (world.rank() == 0) set_floor(machine);
}

int measure(const Config& config, comm::Communicator& world) {
  const bool quick = config.get<bool>("quick");
  const Say say = voice_of(world.rank());
  sim::Machine machine = begin(config.get<int>("cores"));
  if (config.get<std::string>("device") == "cuda")
    calibrate::measure_gpus(machine, world, calibrate::cuda_module(), calibrate::gpu_trial(quick), say);
  else
    measure_cores(machine, world, quick, say);
  if (world.rank() != 0) return 0;
  write(machine, config.get<std::string>("out"));
  fmt::print("wrote {}\n", config.get<std::string>("out"));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<comm::MpiSession> session;
  std::unique_ptr<comm::Communicator> world;
  const auto run = [&] {
    Config config = keys();
    config.parse(argc, argv);
    if (answered(config)) return 0;
    session.emplace(argc, argv);
    world = comm::make_mpi();
    return measure(config, *world);
  };
  return run_main("foreshard-calibrate", run, [&](int code) {
    if (world) world->abort(code);
  });
}
