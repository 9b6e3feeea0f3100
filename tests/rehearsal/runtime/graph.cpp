#include <memory>
#include <vector>

#include "rehearsal/runtime/capture.hpp"
#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

struct CUgraph_st {
  int device = 0;
  std::shared_ptr<const rehearsal::Recorded> recorded;
};

/// Runs each captured stream's work on a stream of its own, so that only the captured waits order them.
struct CUgraphExec_st {
  int device = 0;
  std::shared_ptr<const rehearsal::Recorded> recorded;
  std::vector<std::unique_ptr<rehearsal::Stream>> lanes;
  rehearsal::TicketPtr last;  ///< the end of the launch before, which the next one waits for
};

namespace rehearsal {
namespace {

using Tickets = std::vector<TicketPtr>;

Tickets new_tickets(int count) {
  Tickets tickets;
  for (int i = 0; i < count; ++i) tickets.push_back(std::make_shared<Ticket>());
  return tickets;
}

TicketPtr ticket_of(const Tickets& tickets, int point) { return point < 0 ? nullptr : tickets[point]; }

void add(Stream& stream, const Recorded::Lane& lane, const Tickets& tickets) {
  for (const auto& item : lane.items)
    stream.add({.run = item.run, .wait = ticket_of(tickets, item.wait), .reach = ticket_of(tickets, item.reach)});
}

void launch(CUgraphExec_st& graph, Stream& stream) {
  if (graph.last) stream.add({.run = {}, .wait = graph.last, .reach = {}});
  const TicketPtr begin = stream.mark();
  const Tickets tickets = new_tickets(graph.recorded->points);
  for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    graph.lanes[lane]->add({.run = {}, .wait = begin, .reach = {}});
    add(*graph.lanes[lane], graph.recorded->lanes[lane], tickets);
    stream.add({.run = {}, .wait = graph.lanes[lane]->mark(), .reach = {}});
  }
  graph.last = stream.mark();
}

}  // namespace
}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&] {
    *graph = nullptr;
    const std::lock_guard lock(capture_mutex());
    if (stream == nullptr || !stream->capture) return cudaErrorIllegalState;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (!capture->is_origin(*stream)) return capture->invalidate(cudaErrorStreamCaptureUnmatched);
    auto recorded = std::make_shared<Recorded>();
    if (const cudaError_t error = capture->end(*recorded); error != cudaSuccess) return error;
    *graph = new CUgraph_st{stream->device(), std::move(recorded)};
    ++live_graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&] {
    auto made = std::make_unique<CUgraphExec_st>();
    made->device = graph->device;
    made->recorded = graph->recorded;
    for (const auto& lane : graph->recorded->lanes)
      made->lanes.push_back(std::make_unique<Stream>(graph->device, lane.priority));
    *executable = made.release();
    ++live_graphs;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  return call("cudaGraphLaunch", [&] {
    Stream* stream = stream_of(handle);
    if (graph == nullptr || stream == nullptr || graph->device != stream->device())
      return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = forbidden_in_capture(*stream); error != cudaSuccess) return error;
    launch(*graph, *stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return remember(cudaErrorInvalidValue);
  delete graph;
  --live_graphs;
  return remember(error_of(current_device()));
}

/// Unlike CUDA waits for launches under way.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  if (graph == nullptr) return remember(cudaErrorInvalidValue);
  delete graph;
  --live_graphs;
  return remember(error_of(current_device()));
}
}
