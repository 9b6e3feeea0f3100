#include "rehearsal/emulation/block.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>

#include "rehearsal/emulation/sanitizer.hpp"
#include "rehearsal/emulation/shared_memory.hpp"

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{}, gridDim{};

namespace rehearsal {
namespace {

constinit thread_local Block* current_block = nullptr;

constexpr unsigned warp_lanes = 32;

/// Fibers that no block uses, for whichever thread needs some.
class Pool {
 public:
  std::unique_ptr<Fiber> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Fiber>();
    auto fiber = std::move(free_.back());
    free_.pop_back();
    return fiber;
  }
  void give(std::vector<std::unique_ptr<Fiber>>& fibers) {
    const std::lock_guard lock(mutex_);
    for (auto& fiber : fibers) free_.push_back(std::move(fiber));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Fiber>> free_;
};

Pool& pool() {
  static Pool fibers;
  return fibers;
}

unsigned count(dim3 size) { return size.x * size.y * size.z; }

uint3 position(unsigned number, dim3 size) {
  return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

std::string text(uint3 p) { return fmt::format("({}, {}, {})", p.x, p.y, p.z); }
std::string text(const Where& where) { return fmt::format("{}:{}", where.file_name(), where.line()); }

std::string clash(const char* what, const Where& where, const Where& others) {
  return fmt::format("{} at {}, but other threads wait at {}", what, text(where), text(others));
}
std::string outside(const char* what, const Where& where) {
  return fmt::format("{} at {}: the lane is not in its mask", what, text(where));
}

/// Unseen by the race checker, which would see memcpy.
void copy_unseen(void* to, const void* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/// Warps in a random order, the lanes of each from a random one on.
std::vector<unsigned> order_of_threads(unsigned threads, std::mt19937_64& random) {
  std::vector<unsigned> warps((threads + warp_lanes - 1) / warp_lanes), order;
  std::iota(warps.begin(), warps.end(), 0U);
  std::shuffle(warps.begin(), warps.end(), random);
  for (const unsigned warp : warps) {
    const unsigned first = static_cast<unsigned>(random() % warp_lanes);
    for (unsigned i = 0; i < warp_lanes; ++i)
      if (const unsigned thread = warp * warp_lanes + (first + i) % warp_lanes; thread < threads)
        order.push_back(thread);
  }
  return order;
}

}  // namespace

Block::Block(const Kernel& kernel, std::uint64_t seed)
    : kernel_(kernel), owner_(sanitizer::identity()), threads_(count(kernel.block)) {
  std::mt19937_64 random(seed);
  order_ = order_of_threads(static_cast<unsigned>(threads_.size()), random);
  warps_.resize((threads_.size() + warp_lanes - 1) / warp_lanes);
  if (sanitizer::checks_races)  // before any thread has run, since who is made later knows what was done until then
    while (fibers_.size() < threads_.size()) fibers_.push_back(pool().take());
  current_block = this;
  blockDim = kernel.block;
  gridDim = kernel.grid;
}

Block::~Block() {
  current_block = nullptr;
  pool().give(fibers_);
}

Block& Block::current() {
  if (current_block == nullptr) std::abort();  // device code outside of a kernel
  return *current_block;
}
bool Block::is_running() { return current_block != nullptr && current_block->running_ != nullptr; }

std::string Block::run(uint3 index) {
  begin_block(index);
  while (ended_ < threads_.size() && fault_.empty()) run_next();
  StaticShared::of(kernel_.address).after_block();
  running_ = nullptr;
  return fault_;
}

void Block::begin_block(uint3 index) {
  blockIdx = index;
  StaticShared::of(kernel_.address).before_block();
  const auto dynamic = dynamic_shared_memory_of(kernel_.shared_bytes);
  poison(dynamic.data(), dynamic.size());
  shared_ = dynamic.data();
  for (unsigned i = 0; i < threads_.size(); ++i) threads_[i] = {.number = i};
  begun_ = ended_ = phase_ = 0;
  unused_.clear();
  for (const auto& fiber : fibers_) unused_.push_back(fiber.get());
  sanitizer::release(&start_);
}

void Block::run_next() {
  if (!ready_.empty()) {
    Thread& thread = *ready_.back();
    ready_.pop_back();
    resume(thread);
  } else if (begun_ < threads_.size()) {
    begin_threads();
  } else {
    fault_ = who_waits();
  }
}

void Block::begin_threads() {
  begin_with_ = unused_fiber();
  begin_with_->start(&Block::work);
  begin_with_->enter();
}

Fiber* Block::unused_fiber() {
  if (unused_.empty()) return fibers_.emplace_back(pool().take()).get();
  Fiber* fiber = unused_.back();
  unused_.pop_back();
  return fiber;
}

void Block::work() {
  Block& block = current();
  Fiber* fiber = block.begin_with_;
  do {
    Thread& thread = block.threads_[block.order_[block.begun_++]];
    thread.fiber = fiber;
    block.run_thread(thread);
  } while (!sanitizer::checks_races && block.begun_ < block.threads_.size());
  if (!sanitizer::checks_races) block.unused_.push_back(fiber);
  Fiber::leave();
}

void Block::run_thread(Thread& thread) {
  running_ = &thread;
  threadIdx = position(thread.number, kernel_.block);
  sanitizer::become(thread.fiber->identity());
  sanitizer::acquire(&start_);
  kernel_.call();
  sanitizer::become_after(owner_);
  thread.ended = true;
  ++ended_;
}

void Block::resume(Thread& thread) {
  running_ = &thread;
  threadIdx = position(thread.number, kernel_.block);
  thread.fiber->enter();
}

void Block::fail(std::string what) {
  sanitizer::become_after(owner_);
  fault_ = place() + ": " + what;
  std::string().swap(what);
  Fiber::leave();
  std::abort();
}

void Block::barrier(const Where& where) {
  Thread& thread = *running_;
  char* const meets = &barriers_[phase_];
  sanitizer::release(meets);
  sanitizer::become_after(owner_);
  if (!waiting_.empty() && where.line() != barrier_where_.line()) fail(clash("__syncthreads()", where, barrier_where_));
  barrier_where_ = where;
  waiting_.push_back(&thread);
  thread.at_barrier = true;
  if (waiting_.size() == threads_.size()) end_barrier();
  if (thread.at_barrier) Fiber::leave();
  sanitizer::become(thread.fiber->identity());
  sanitizer::acquire(meets);
}

void Block::end_barrier() {
  for (Thread* thread : waiting_) {
    thread->at_barrier = false;
    if (thread != running_) ready_.push_back(thread);
  }
  waiting_.clear();
  phase_ = 1 - phase_;
}

Meeting& Block::meet(unsigned mask, const void* brought, std::size_t bytes, const char* what, const Where& where) {
  Thread& thread = *running_;
  sanitizer::become_after(owner_);
  Meeting& meeting = warps_[thread.number / warp_lanes].join(mask);
  join(meeting, brought, bytes, what, where);
  if (bytes == 0) {  // this one orders memory
    sanitizer::become(thread.fiber->identity());
    sanitizer::release(&meeting);
    sanitizer::become_after(owner_);
  }
  thread.meeting = &meeting;
  if (meeting.come != mask) Fiber::leave();
  thread.meeting = nullptr;
  sanitizer::become(thread.fiber->identity());
  if (bytes == 0) sanitizer::acquire(&meeting);
  return meeting;
}

void Block::join(Meeting& meeting, const void* brought, std::size_t bytes, const char* what, const Where& where) {
  const unsigned lane = running_->number % warp_lanes;
  if ((meeting.mask >> lane & 1U) == 0) fail(outside(what, where));
  if (meeting.come != 0 && where.line() != meeting.where.line()) fail(clash(what, where, meeting.where));
  meeting.what = what;
  meeting.where = where;
  copy_unseen(meeting.brought[lane], brought, bytes);
  meeting.come |= 1U << lane;
  meeting.waiting[lane] = running_;
  if (meeting.come != meeting.mask) return;
  for (unsigned other = 0; other < warp_lanes; ++other)
    if (other != lane && (meeting.mask >> other & 1U) != 0) ready_.push_back(meeting.waiting[other]);
}

void Block::end(Meeting& meeting) {
  meeting.gone |= 1U << running_->number % warp_lanes;
  if (meeting.gone == meeting.mask) meeting.mask = 0;
}

std::string Block::who_waits() const {
  std::string states;
  for (const Thread& thread : threads_) {
    if (thread.meeting != nullptr)
      return fmt::format("kernel {}, block {}, thread {}: waits for lanes {:#010x} in {} at {}, of which {:#010x} came",
                         name_of(kernel_.address), text(blockIdx), text(position(thread.number, kernel_.block)),
                         thread.meeting->mask, thread.meeting->what, text(thread.meeting->where), thread.meeting->come);
    if (thread.ended && states.empty()) states = text(position(thread.number, kernel_.block));
  }
  return fmt::format("kernel {}, block {}, thread {}: has ended, but {} threads wait in __syncthreads() at {}",
                     name_of(kernel_.address), text(blockIdx), states, waiting_.size(), text(barrier_where_));
}

std::string run(const Kernel& kernel, std::uint64_t seed) {
  std::vector<unsigned> order(count(kernel.grid));
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  Block block(kernel, random());
  for (const unsigned number : order)
    if (std::string fault = block.run(position(number, kernel.grid)); !fault.empty()) return fault;
  return {};
}

std::string place() {
  if (!Block::is_running()) return {};
  return fmt::format("kernel {}, block {}, thread {}", name_of(Block::current().kernel().address), text(blockIdx),
                     text(threadIdx));
}

}  // namespace rehearsal
