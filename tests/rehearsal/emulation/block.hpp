#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rehearsal/emulation/fiber.hpp"
#include "rehearsal/emulation/kernel.hpp"
#include "rehearsal/emulation/meeting.hpp"

namespace rehearsal {

struct Copy {
  void* to;
  const void* from;
  bool present;
};

/// A thread of a block.
struct Thread {
  unsigned number = 0;
  Fiber* fiber = nullptr;  ///< from its first instruction on
  bool ended = false;
  bool at_barrier = false;
  Meeting* meeting = nullptr;             ///< that it waits in
  std::vector<std::vector<Copy>> copies;  ///< by group, the last one open
};

/// Runs the blocks of one kernel on the calling thread, block after block. Threads run until they wait for others; a
/// fiber whose thread has ended goes on with the next thread, so that threads that never wait cost no switches (not
/// under the race checker, for which every thread has an identity of its own).
class Block {
 public:
  Block(const Kernel&, std::uint64_t seed);
  ~Block();
  std::string run(uint3 index);  ///< what went wrong, or empty

  static Block& current();
  static bool is_running();
  // Called by its threads.
  /// What the caller still holds is lost, since nothing returns.
  [[noreturn]] void fail(std::string what);
  void barrier(const Where&);
  Meeting& meet(unsigned mask, const void* brought, std::size_t bytes, const char* what, const Where&);
  void end(Meeting&);
  Thread& thread() { return *running_; }
  const Kernel& kernel() const { return kernel_; }
  char* shared_memory() const { return shared_; }

 private:
  static void work();
  void begin_block(uint3 index);
  void begin_threads();
  void run_next();
  void run_thread(Thread&);
  void resume(Thread&);
  void end_barrier();
  void join(Meeting&, const void* brought, std::size_t bytes, const char* what, const Where&);
  std::string who_waits() const;
  Fiber* unused_fiber();

  const Kernel& kernel_;
  void* owner_;  ///< for the race checker: who runs what is not a thread of the block
  char* shared_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<unsigned> order_;
  std::vector<Meetings> warps_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> unused_;
  std::vector<Thread*> ready_, waiting_;
  Where barrier_where_;
  unsigned begun_ = 0, ended_ = 0, phase_ = 0;
  Thread* running_ = nullptr;
  Fiber* begin_with_ = nullptr;
  std::string fault_;
  char start_ = 0, barriers_[2] = {};  ///< addresses for the race checker
};

}  // namespace rehearsal
