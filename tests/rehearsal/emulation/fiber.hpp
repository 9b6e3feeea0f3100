#pragma once
#include <cstddef>

namespace rehearsal {

/// A stack of its own, on which an operating system's thread goes on for a while. Not bound to one of these threads,
/// but started and ended on the same one.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next `enter` begins `entry`, which must end by `leave` and is not entered again then. What was begun before
  /// and has not ended is forgotten, without destructors.
  void start(void (*entry)());
  void enter();         ///< from the thread's own stack; returns when the fiber leaves
  static void leave();  ///< from the fiber that was entered, back to who did

  void* identity() const { return identity_; }  ///< for the thread sanitizer

 private:
  static void begin();

  char* stack_;  ///< a guard page, then sanitizer::stack_bytes
  void* at_ = nullptr;
  void* fake_stack_ = nullptr;
  void* identity_;
  void (*entry_)() = nullptr;
};

}  // namespace rehearsal
