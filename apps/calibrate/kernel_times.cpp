#include "apps/calibrate/kernel_times.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <filesystem>
#include <mutex>

#include "apps/calibrate/local_ranks.hpp"
#include "apps/calibrate/process.hpp"
#include "apps/calibrate/samples.hpp"
#include "apps/calibrate/trainee.hpp"
#include "apps/calibrate/workout.hpp"
#include "base/clock.hpp"
#include "base/process_memory.hpp"
#include "comm/mpi_communicator.hpp"
#include "engine/cpu_executor.hpp"
#include "trace/writer.hpp"

namespace foreshard::calibrate {
namespace {

struct CpuKernels {
  std::unique_ptr<kernels::Backend> kernels = kernels::make_cpu();
};

/// A training on processor cores, with a team of `threads`. Its kernels outlive it.
class CpuTrainee : CpuKernels, public Trainee {
 public:
  CpuTrainee(const plan::Settings& settings, comm::Communicator& communicator, int threads)
      : Trainee(settings, communicator, engine::on_cpu(*kernels, {.threads = threads})) {}
};

/// Enough steps for a median: about 300 million multiplications take 10 ms on a core.
int step_count(const plan::Settings& settings, bool quick) {
  const auto tokens = static_cast<double>(settings.batch.batch * settings.batch.seq * settings.schedule.micro_batches);
  const model::Dimensions model = model::dimensions(settings.model);
  const auto width = static_cast<double>(model.width);
  const double parameters =
      12.0 * width * width * static_cast<double>(model.layers) + width * static_cast<double>(model.vocab_size);
  const double seconds = 6 * parameters * tokens / 60e9;
  return std::clamp(static_cast<int>((quick ? 0.7 : 2.0) / seconds), 3, 15);
}

bool is_any(model::OpKind) { return true; }
bool is_copy(model::OpKind kind) { return kind == model::OpKind::fetch || kind == model::OpKind::offload; }
bool is_of_update(model::OpKind kind) { return model::is_update(kind) || kind == model::OpKind::grad_norm; }

void measure_workout(sim::Machine& machine, const plan::Settings& settings, int busy_cores, bool quick,
                     bool (*wanted)(model::OpKind)) {
  const int steps = step_count(settings, quick);
  std::barrier together(busy_cores);
  std::mutex mutex;
  run_lone_ranks(busy_cores, [&](int thread, comm::Communicator& communicator) {
    CpuTrainee trainee(settings, communicator, 1);
    Samples samples(trainee.plan());
    for (int step = 0; step <= steps; ++step) {
      together.arrive_and_wait();
      const auto events = trainee.step();
      if (step > 0) samples.add(events);
    }
    const std::lock_guard lock(mutex);
    if (thread == 0)
      samples.add_to(machine.kernels, busy_cores,
                     fmt::format("measured in training steps, {} ranks at once", busy_cores), wanted);
  });
}

double team_seconds(const plan::Settings& settings, int threads) {
  double seconds = 0;
  run_lone_ranks(1, [&](int, comm::Communicator& communicator) {
    CpuTrainee trainee(settings, communicator, threads);
    Samples samples(trainee.plan());
    for (int step = 0; step < 10; ++step) {
      const auto events = trainee.step();
      if (step > 0) samples.add(events);
    }
    seconds = samples.compute_seconds();
  });
  return seconds;
}

/// Resident memory besides the arena of a process that trains.
ResidentKinds training_bytes(const plan::Settings& settings) {
  ResidentKinds bytes;
  run_lone_ranks(1, [&](int, comm::Communicator& communicator) {
    CpuTrainee trainee(settings, communicator, 1);
    for (int step = 0; step < 4; ++step) trainee.step();
    bytes = resident_kinds();
    bytes.own -= trainee.arena_bytes();
  });
  return bytes;
}

/// As recorded of so many steps: each op once.
std::vector<trace::Event> events_of(const plan::Plan& plan, int steps) {
  std::vector<trace::Event> events;
  for (int step = 1; step <= steps; ++step)
    for (std::uint32_t op = 0; op < plan.ops.size(); ++op)
      events.push_back(
          {.start_ns = static_cast<std::int64_t>(events.size()), .duration_ns = 1, .op = op, .step = step});
  return events;
}

/// What an open trace adds to it that has been written to as often as one of 200 steps, the most that are recorded
/// unless asked for.
std::int64_t trace_bytes(const plan::Settings& settings) {
  const plan::Plan plan =
      plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  const auto path = std::filesystem::temp_directory_path() / fmt::format("foreshard-calibrate-{}.h5", getpid());
  const std::int64_t before = resident_kinds().own;
  trace::Writer writer(path, {.world_size = 2}, plan, {}, true);
  for (int flush = 0; flush < 10; ++flush) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) writer.append(rank, events_of(plan, 20));
    writer.flush();
  }
  const std::int64_t added = resident_kinds().own - before;
  writer.close();
  std::filesystem::remove(path);
  return added;
}

/// Tables of the same kernel and number of busy cores give way to the new ones.
void replace(std::vector<sim::KernelTable>& tables, std::vector<sim::KernelTable> by) {
  std::erase_if(tables, [&](const sim::KernelTable& old) {
    return std::any_of(by.begin(), by.end(), [&](const sim::KernelTable& table) {
      return table.kind == old.kind && table.accumulate == old.accumulate && table.busy_cores == old.busy_cores &&
             table.dtype == old.dtype;
    });
  });
  for (sim::KernelTable& table : by) tables.push_back(std::move(table));
}

}  // namespace

void measure_kernels(sim::Machine& machine, int busy_cores, bool quick) {
  for (const plan::Settings& settings : workouts(quick)) measure_workout(machine, settings, busy_cores, quick, is_any);
  for (plan::Settings settings : workouts(true)) {
    settings.schedule.precision.parameters = DType::bf16;
    measure_workout(machine, settings, busy_cores, quick, is_any);
  }
  for (const std::size_t size : {0, 3, 5}) {
    plan::Settings settings = workouts(true)[size];
    settings.schedule.offload = {.parameters = true, .gradients = true};
    settings.schedule.micro_batches = 2;
    measure_workout(machine, settings, busy_cores, quick, is_copy);
    settings = workouts(true)[size];
    settings.schedule.precision.parameters = settings.schedule.master = DType::bf16;
    measure_workout(machine, settings, busy_cores, quick, model::is_update);
  }
}

void measure_update(sim::Machine& machine, int ranks) {
  const int busy_cores = std::min(ranks, machine.cores);
  std::vector<sim::KernelTable> tables;
  for (const plan::Settings& settings : sharded_workouts(ranks)) {
    const auto world = comm::make_mpi();
    CpuTrainee trainee(settings, *world, 1);
    Samples samples(trainee.plan());
    for (int step = 0; step < 6; ++step) {
      const auto events = trainee.step();
      if (step > 0) samples.add(events);
      world->barrier();
    }
    samples.add_to(tables, busy_cores, fmt::format("measured in training steps of {} MPI ranks", ranks), is_of_update);
  }
  replace(machine.kernels, std::move(tables));
}

void measure_process(sim::Machine& machine, comm::Communicator& world) {
  CpuTrainee trainee(sharded_workout(world.size()), world, 1);
  for (int step = 0; step < 4; ++step) trainee.step();
  world.barrier();
  const std::int64_t shared = resident_kinds().shared_files;
  const std::int64_t own = resident_bytes() - trainee.arena_bytes() - shared / world.size();
  world.barrier();  // nobody lets go of memory while another still measures its own
  const auto trace = static_cast<double>(world.rank() == 0 ? trace_bytes(workouts(true).front()) : 0);
  const std::string source = fmt::format("measured in training steps of {} MPI ranks", world.size());
  machine.process_base_bytes = {static_cast<double>(own) + trace, source};
  machine.process_shared_bytes = {static_cast<double>(shared), source};
}

void measure_team(sim::Machine& machine) {
  if (machine.cores == 1) return;
  const plan::Settings settings = workouts(true)[3];
  const double efficiency = team_seconds(settings, 1) / team_seconds(settings, machine.cores) / machine.cores;
  machine.team_efficiency = {efficiency, "measured in training steps of one rank"};
}

void measure_handovers(sim::Machine& machine, int ranks) {
  Handovers handovers;
  run_local_ranks(ranks, [&](comm::Communicator& communicator) {
    CpuTrainee trainee(sharded_workout(ranks), communicator, 1);
    for (int step = 0; step < 10; ++step) {
      const auto events = trainee.step();
      if (step > 0 && communicator.rank() == 0) handovers.add(trainee.plan(), events);
      communicator.barrier();
    }
  });
  const std::string source = fmt::format("measured in training steps, ranks: {}", ranks);
  if (ranks == 1) machine.handover_alone_s = {typical(handovers.next), source};
  if (ranks > 1) machine.handover_next_s = {typical(handovers.next), source};
  if (ranks > 1) machine.handover_wake_s = {typical(handovers.wake), source};
}

double train_while(const std::function<bool()>& more, int threads) {
  std::int64_t steps = 0, start_ns = 0, end_ns = 0;
  run_lone_ranks(1, [&](int, comm::Communicator& communicator) {
    CpuTrainee trainee(workouts(true).back(), communicator, threads);
    trainee.step();
    start_ns = now_ns();
    do trainee.step(), ++steps;
    while (more());
    end_ns = now_ns();
  });
  return 1e-9 * static_cast<double>(end_ns - start_ns) / static_cast<double>(steps);
}

void measure_process(sim::Machine& machine) {
  const ResidentKinds bytes = training_bytes(workouts(true).front());
  const std::int64_t trace = trace_bytes(workouts(true).front());
  machine.process_base_bytes = {static_cast<double>(bytes.own + trace),
                                "measured: data of a training besides its arena, and of a trace"};
  machine.process_shared_bytes = {static_cast<double>(bytes.files), "measured: pages of programs and libraries"};
}

}  // namespace foreshard::calibrate
