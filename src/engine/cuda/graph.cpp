#include "engine/cuda/graph.hpp"

#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {

using kernels::cuda::check;

Graph::Graph(cudaGraph_t captured) {
  const cudaError_t result = cudaGraphInstantiate(&graph_, captured, 0);
  cudaGraphDestroy(captured);
  check(result, "cudaGraphInstantiate");
}

Graph::~Graph() {
  if (graph_) cudaGraphExecDestroy(graph_);
}

void Graph::launch(const Stream& stream) const { check(cudaGraphLaunch(graph_, stream.get()), "cudaGraphLaunch"); }

Capture::Capture(std::span<const Stream* const> streams) : streams_(streams) {
  check(cudaStreamBeginCapture(streams_.front()->get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  streams_.front()->record(event_);
  for (const Stream* other : streams_.subspan(1)) other->wait(event_);
}

Capture::~Capture() {
  if (!open_) return;
  cudaGraph_t captured = nullptr;
  cudaStreamEndCapture(streams_.front()->get(), &captured);
  if (captured) cudaGraphDestroy(captured);
}

Graph Capture::end() {
  for (const Stream* other : streams_.subspan(1)) {
    other->record(event_);
    streams_.front()->wait(event_);
  }
  open_ = false;
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(streams_.front()->get(), &captured), "cudaStreamEndCapture");
  return Graph(captured);
}

}  // namespace foreshard::engine::cuda
