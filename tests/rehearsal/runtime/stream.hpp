#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "cuda_runtime_api.h"
#include "rehearsal/runtime/ticket.hpp"

namespace rehearsal {

class Capture;

/// Something to do, or to wait for, or to say when it is reached.
struct Work {
  std::function<void()> run;
  TicketPtr wait, reach;
};

/// Does its work in order, on a thread of its own. Once its device has failed it only says what it reached.
class Stream {
 public:
  explicit Stream(int device, int priority = 0);
  ~Stream();  ///< when all work is done
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void add(Work);
  TicketPtr mark();  ///< reached when all work so far is done
  void synchronise() { mark()->wait(); }
  bool idle() const;

  int device() const { return device_; }
  int priority() const { return priority_; }

  std::shared_ptr<Capture> capture;  ///< that it takes part in, guarded by capture_mutex()
  int lane = 0;                      ///< there

 private:
  void run();
  void carry_out(Work&);

  const int device_, priority_;
  const std::uint64_t number_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  bool busy_ = false, ending_ = false;
  std::thread thread_;
};

Stream& default_stream(int device);
/// The stream of a handle, null meaning the current device's default stream.
Stream& any_stream(cudaStream_t);
/// The same; null if it is not of the current device.
Stream* stream_of(cudaStream_t);
void synchronise_device(int device);

/// Queues work on a stream, or captures it. All that is ever done on streams goes through here.
cudaError_t queue(cudaStream_t, std::function<void()> run);

}  // namespace rehearsal

struct CUstream_st : rehearsal::Stream {
  using Stream::Stream;
};
