#pragma once
#include <cuda_runtime.h>

#include <span>
#include <utility>

#include "engine/cuda/stream.hpp"

namespace foreshard::engine::cuda {

/// What was queued on some streams between two moments, to be queued again by one call.
class Graph {
 public:
  explicit Graph(cudaGraph_t captured);  ///< takes it over
  Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Graph& operator=(Graph&&) = delete;
  ~Graph();
  void launch(const Stream& stream) const;

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// Captures what is queued on `streams` while it lives, from the first of them; other threads' calls do not matter.
/// Nothing may be waited for that was queued before.
class Capture {
 public:
  explicit Capture(std::span<const Stream* const> streams);
  ~Capture();  ///< drops what was captured, if `end` was not called
  Graph end();

 private:
  std::span<const Stream* const> streams_;
  Event event_;
  bool open_ = true;
};

}  // namespace foreshard::engine::cuda
