#include "engine/cuda/executor.hpp"

#include <cublasLt.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <future>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::cuda::check;
using plan::Lane;
using plan::Op;
using plan::OpKind;

/// What profilers show of the host's side of an op.
class ProfilerRange {
 public:
  explicit ProfilerRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~ProfilerRange() { nvtxRangePop(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

constexpr auto poll_interval = std::chrono::microseconds(20);
constexpr const char* chooser_name = "device";  // among choices
constexpr auto abort_patience = std::chrono::seconds(5);

}  // namespace

Executor::Executor(const EngineSpec& spec, const CudaOptions& options)
    : ranks_(spec.communicator),
      options_(options),
      pulse_(options_.pulse ? *options_.pulse : unseen_pulse_),
      device_(choose_device(ranks_)),
      workspace_bytes_(spec.workspace.size_bytes),
      device_memory_(spec.device_bytes),
      host_memory_(spec.host_bytes),
      arenas_{Arena(device_memory_.bytes()), Arena(host_memory_.bytes())},
      collectives_(spec.mesh, ranks_,
                   std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(options_.connect_deadline)) {
  make_queues(spec.workspace);
  if (ranks_.rank() == 0) log_info("collectives  {}", comm::nccl::version());
}

/// Communication goes first where both could, so that others are not kept waiting.
void Executor::make_queues(const plan::ArenaRange& workspace) {
  std::byte* scratch = arenas_.device.at(workspace.offset_bytes, workspace.size_bytes);
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    const bool computes = static_cast<Lane>(lane) == Lane::compute;
    Queue queue{Stream(computes ? Stream::Priority::normal : Stream::Priority::high), nullptr, 0, {}};
    queue.kernels = kernels::cuda::make({.stream = queue.stream.get(),
                                         .workspace = computes ? scratch : nullptr,
                                         .workspace_bytes = computes ? workspace.size_bytes : 0});
    queues_.push_back(std::move(queue));
  }
  streams_.push_back(&compute().stream);
  for (const Queue& queue : queues_)
    if (&queue != &compute()) streams_.push_back(&queue.stream);
}

/// After a failure collectives may never end: they are aborted, all before any is freed, and not waited for too long.
Executor::~Executor() {
  if (!failed_) return;
  auto aborted = std::async(std::launch::async, [this] { collectives_.abort(); });
  if (aborted.wait_for(abort_patience) == std::future_status::ready) return;
  log_warn("NCCL did not abort within {} s", abort_patience.count());
  std::_Exit(static_cast<int>(ExitCode::runtime_failure));
}

Prepared& Executor::prepared(const plan::Plan& plan) {
  for (const auto& known : prepared_)
    if (&known->plan() == &plan) return *known;
  return *prepared_.emplace_back(std::make_unique<Prepared>(plan, ranks_.rank(), choices_));
}

/// What choices are made for.
std::string Executor::chooser() const {
  return fmt::format("{} with {} of workspace, cuBLASLt {}, cuDNN {}", device_.name, bytes_text(workspace_bytes_),
                     cublasLtGetVersion(), queues_.front().kernels->cudnn_version());
}

KernelChoices Executor::measure_kernels(const plan::Plan& plan) {
  KernelChoices choices = measure_algorithms(plan, compute().stream, *compute().kernels);
  choices.merge(measure_attention(plan, compute().stream, *compute().kernels));
  choices.emplace(chooser_name, chooser());
  return choices;
}

bool Executor::can_use(const KernelChoices& choices) const {
  const auto made_for = choices.find(chooser_name);
  return made_for == choices.end() ? choices.empty() : made_for->second == chooser();
}

/// What was prepared, graphs above all, holds the choices before.
void Executor::use_kernels(const KernelChoices& choices, const plan::Plan& plan) {
  use_algorithms(choices, plan, *compute().kernels);
  use_attention(choices, plan, *compute().kernels);
  choices_ = choices;
  prepared_.clear();
}

void Executor::begin_step(const plan::Plan& plan, const exec::StepContext& context, trace::Recorder* recorder) {
  plan_ = &plan;
  now_ = &prepared(plan);
  number_ = context.step;
  recorder_ = recorder;
  step_.upload(context, compute().stream);
  for (Queue& queue : queues_)
    while (queue.events.size() < 2 * plan.ops.size() + 1) queue.events.emplace_back();
  now_->keep_graphs_of(step_.generation());
  if (recorder_) timer_.begin_step(compute().stream);
  pulse_.begin_step(context.step);
  replaying_ = replays() && now_->is_captured();
  if (replaying_) launch_graphs();
}

void Executor::launch_graphs() {
  try {
    for (const Graph& graph : now_->graphs()) graph.launch(compute().stream);
  } catch (const std::exception& error) {
    fail(error);
  }
}

void Executor::begin_capture() {
  for (std::size_t lane = 0; lane < queues_.size(); ++lane) before_graph_[lane] = queues_[lane].issued;
  captured_ops_ = 0;
  capture_.emplace(streams_);
}

void Executor::end_capture() {
  const Graph& graph = now_->add_graph(capture_->end());
  capture_.reset();
  graph.launch(compute().stream);
}

exec::Ticket Executor::issue(const exec::Instance& instance, std::span<const exec::Ticket> waits) {
  const Op& op = *instance.op;
  Queue& queue = queue_of(op.lane);
  try {
    if (replays() && !replaying_ && !capture_) begin_capture();
    const exec::Ticket ticket{op.lane, ++queue.issued};
    count(op);
    if (replaying_) return ticket;
    wait_for(queue, op.lane, waits);
    enqueue(instance, queue);
    if (now_->ends_segment(op)) end_segment(op);
    return ticket;
  } catch (const std::exception& error) {
    fail(error);
  }
}

void Executor::end_segment(const Op& op) {
  compute().kernels->advance(step_.step());
  captured_ops_ += now_->segment_of(op).op_count;
  if (capture_ && captured_ops_ >= options_.graph_ops) end_capture();
}

/// A graph follows those before it as a whole.
void Executor::wait_for(Queue& queue, Lane lane, std::span<const exec::Ticket> waits) {
  for (const exec::Ticket& wait : waits) {
    const bool is_before_graph = capture_ && wait.sequence <= before_graph_[static_cast<std::size_t>(wait.lane)];
    if (wait.sequence > 0 && wait.lane != lane && !is_before_graph)
      queue.stream.wait(queue_of(wait.lane).event(wait.sequence));
  }
}

void Executor::enqueue(const exec::Instance& instance, Queue& queue) {
  const Op& op = *instance.op;
  const ProfilerRange range(now_->name(op));
  if (recorder_) timer_.begin_op(instance, queue.stream);
  Compute compute(*plan_, *now_, ranks_.rank(), arenas_, step_, *queue.kernels);
  if (plan::is_collective(op.kind))
    collectives_.run(op, *plan_, compute.bytes(plan_->inputs(op)[0]), compute.bytes(plan_->outputs(op)[0]),
                     {queue.stream, *queue.kernels});
  else
    compute.run(op);
  if (recorder_) timer_.end_op(queue.stream);
  if (now_->ends_visit(op)) progress_.mark(*plan_, op, *queue.kernels);
  if (now_->awaited(op)) queue.stream.record(queue.event(queue.issued));
}

void Executor::count(const Op& op) {
  if (!plan::is_collective(op.kind)) return;
  comm::Count& count = op.kind == OpKind::all_gather || op.kind == OpKind::gather_norm ? counters_.all_gather
                       : op.kind == OpKind::reduce_scatter                             ? counters_.reduce_scatter
                                                                                       : counters_.all_reduce;
  ++count.calls;
  count.payload_bytes += static_cast<std::uint64_t>(plan::payload_bytes(*plan_, op));
  count.received_bytes += static_cast<std::uint64_t>(op.wire_bytes);
}

void Executor::finish() {
  try {
    if (capture_) end_capture();
    if (replays()) now_->set_captured();
    await_device();
    loss_fault_ = step_.loss_fault(compute().stream);
    if (recorder_) timer_.record(*plan_, number_, *recorder_);
  } catch (const std::exception& error) {
    fail(error);
  }
  pulse_.end_step();
}

void Executor::await_device() {
  for (const Stream* stream : streams_)
    while (!stream->idle()) poll();
  progress_.report(pulse_);
}

void Executor::poll() {
  ranks_.expect_running("a step on CUDA devices");
  collectives_.expect_sound();
  progress_.report(pulse_);
  std::this_thread::sleep_for(poll_interval);
}

/// Errors of kernels come with a later call, so what is known is how far each lane had come.
void Executor::fail(const std::exception& error) {
  failed_ = true;
  capture_.reset();
  throw LibraryError(fmt::format("{}; device {} of rank {} in step {}: {}", error.what(), device_.pci_bus_id,
                                 ranks_.rank(), number_, progress_.text(*plan_)));
}

void Executor::read(const plan::Buffer& buffer, const Read& f) {
  const std::byte* from = arenas_.of(buffer.space).at(buffer.offset_bytes, buffer.size_bytes);
  const auto size = static_cast<std::size_t>(buffer.size_bytes);
  if (buffer.space == plan::Space::host) return f({from, size});
  std::vector<std::byte> copy(size);
  check(cudaMemcpy(copy.data(), from, size, cudaMemcpyDeviceToHost), "cudaMemcpy");
  f(copy);
}

void Executor::change(const plan::Buffer& buffer, const Change& f) {
  std::byte* to = arenas_.of(buffer.space).at(buffer.offset_bytes, buffer.size_bytes);
  const auto size = static_cast<std::size_t>(buffer.size_bytes);
  if (buffer.space == plan::Space::host) return f({to, size});
  std::vector<std::byte> copy(size);
  check(cudaMemcpy(copy.data(), to, size, cudaMemcpyDeviceToHost), "cudaMemcpy");
  f(copy);
  check(cudaMemcpy(to, copy.data(), size, cudaMemcpyHostToDevice), "cudaMemcpy");
}

}  // namespace foreshard::engine::cuda
