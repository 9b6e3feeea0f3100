#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cuda_runtime_api.h"

namespace rehearsal {

class Stream;

/// What was captured: for each stream its work in order, with waits for points of others.
struct Recorded {
  struct Item {
    std::function<void()> run;
    int wait = -1, reach = -1;  ///< numbers of points
  };
  struct Lane {
    int priority = 0;
    std::vector<Item> items;
  };
  std::vector<Lane> lanes;
  int points = 0;
};

/// How much of each lane's work is known to precede a point.
using Known = std::vector<std::size_t>;

/// A capture under way, begun on one stream, which others join by waiting for events recorded in it. All members under
/// capture_mutex().
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  Capture(Stream& origin, cudaStreamCaptureMode);

  void join(Stream&);
  cudaError_t add_run(Stream&, std::function<void()>);
  int add_point(Stream&, Known& known);  ///< its number
  cudaError_t add_wait(Stream&, int point, const Known&);
  cudaError_t invalidate(cudaError_t);  ///< returns the error
  cudaError_t end(Recorded&);           ///< streams leave; an error if work of one does not precede the origin's end

  bool valid() const { return valid_; }
  bool ended() const { return ended_; }
  bool is_origin(const Stream& stream) const { return origin_ == &stream; }
  bool forbids_unsafe_calls() const;  ///< of this thread

 private:
  void learn(std::size_t lane, const Known&);

  Stream* origin_;
  cudaStreamCaptureMode mode_;
  std::thread::id thread_ = std::this_thread::get_id();
  bool valid_ = true, ended_ = false;
  std::vector<Stream*> streams_;
  std::vector<Known> known_;  ///< by lane
  Recorded recorded_;
};

std::mutex& capture_mutex();

/// The error of a call that waits for, or asks about, a stream that is captured, or any while this thread captures.
cudaError_t forbidden_in_capture(Stream&);
/// The error of a call that CUDA calls unsafe while a capture is under way that is not relaxed: of any thread if
/// global.
cudaError_t unsafe_in_capture();

}  // namespace rehearsal
