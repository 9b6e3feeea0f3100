#include "rehearsal/runtime/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "rehearsal/emulation/sanitizer.hpp"
#include "rehearsal/emulation/shared_memory.hpp"

namespace rehearsal {
namespace {

constexpr std::size_t page = 4096, alignment = 256, window = std::size_t{1} << 35;

/// By itself, not by the sanitizers' functions, which would prepare for all of it to be used.
std::uintptr_t reserve(std::size_t bytes) {
  const long at = syscall(SYS_mmap, nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
  if (at == -1) std::abort();
  return static_cast<std::uintptr_t>(at);
}

std::uintptr_t seen_base, real_base;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }
std::uintptr_t number(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }
bool within(std::uintptr_t at, std::uintptr_t base) { return at - base < window * most_devices; }

}  // namespace

Memory& Memory::instance() {
  static auto* memory = new Memory;  // outlives streams that nobody destroyed
  return *memory;
}

Memory::Memory() {
  seen_base = reserve(window * most_devices);
  real_base = reserve(window * most_devices);
}

cudaError_t Memory::allocate(int device, std::size_t bytes, void** at) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return *at = nullptr, cudaSuccess;
  const std::size_t pages = rounded_up(bytes, page);
  if (bytes > total_ - used_[device] || pages + page > window - next_[device]) return cudaErrorMemoryAllocation;
  const std::uintptr_t end = window * device + next_[device] + page + pages;
  next_[device] += page + pages;
  used_[device] += bytes;
  auto* real = reinterpret_cast<char*>(real_base + end - pages);
  if (mprotect(real, pages, PROT_READ | PROT_WRITE) != 0) return cudaErrorMemoryAllocation;
  const std::uintptr_t start = end - rounded_up(bytes, alignment);
  poison(reinterpret_cast<void*>(real_base + start), bytes);
  sanitizer::forbid(reinterpret_cast<void*>(real_base + start + bytes), rounded_up(bytes, alignment) - bytes);
  ranges_[seen_base + start] = {bytes, device};
  *at = reinterpret_cast<void*>(seen_base + start);
  return cudaSuccess;
}

cudaError_t Memory::free(void* at) {
  const std::lock_guard lock(mutex_);
  if (at == nullptr) return cudaSuccess;
  const auto found = ranges_.find(number(at));
  if (found == ranges_.end() || found->second.device < 0 || found->second.freed) return cudaErrorInvalidValue;
  Range& range = found->second;
  range.freed = true;
  used_[range.device] -= range.bytes;
  const std::uintptr_t start = number(real(at)), first = start / page * page;
  const std::size_t pages = rounded_up(start + range.bytes, page) - first;
  sanitizer::allow(reinterpret_cast<void*>(start), first + pages - start);
  madvise(reinterpret_cast<void*>(first), pages, MADV_DONTNEED);
  mprotect(reinterpret_cast<void*>(first), pages, PROT_NONE);
  return cudaSuccess;
}

cudaError_t Memory::allocate_pinned(std::size_t bytes, void** at) {
  const std::size_t size = rounded_up(bytes == 0 ? 1 : bytes, page);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return cudaErrorMemoryAllocation;
  poison(memory, bytes);
  const std::lock_guard lock(mutex_);
  ranges_[number(memory)] = {bytes, -1};
  *at = memory;
  return cudaSuccess;
}

cudaError_t Memory::free_pinned(void* at) {
  const std::lock_guard lock(mutex_);
  if (at == nullptr) return cudaSuccess;
  const auto found = ranges_.find(number(at));
  if (found == ranges_.end() || found->second.device >= 0) return cudaErrorInvalidValue;
  munmap(at, rounded_up(found->second.bytes == 0 ? 1 : found->second.bytes, page));
  ranges_.erase(found);
  return cudaSuccess;
}

Memory::Ranges::const_iterator Memory::at_or_before(std::uintptr_t at) const {
  const auto after = ranges_.upper_bound(at);
  return after == ranges_.begin() ? ranges_.end() : std::prev(after);
}

const Memory::Range* Memory::find(const void* at) const {
  const std::lock_guard lock(mutex_);
  const auto found = at_or_before(number(at));
  if (found == ranges_.end() || found->second.freed || number(at) - found->first >= found->second.bytes) return nullptr;
  return &found->second;
}

bool Memory::is_device_address(const void* at) const { return within(number(at), seen_base); }
bool Memory::is_real(const void* at) { return within(number(at), real_base); }
void* Memory::real(const void* at) {
  return reinterpret_cast<void*>(within(number(at), seen_base) ? number(at) - seen_base + real_base : number(at));
}

std::string Memory::problem(const void* at, std::size_t bytes, int device) const {
  const Range* range = find(at);
  if (range == nullptr) return fmt::format("{} is {}", at, describe(at));
  if (range->device >= 0 && range->device != device)
    return fmt::format("{} is in device {}, used on device {}", at, range->device, device);
  const std::lock_guard lock(mutex_);
  const std::size_t left = at_or_before(number(at))->first + range->bytes - number(at);
  if (bytes > left) return fmt::format("{} bytes from {}, where {} are left of an allocation", bytes, at, left);
  return {};
}

std::string Memory::describe(const void* address) const {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t at = is_real(address) ? number(address) - real_base + seen_base : number(address);
  const auto found = at_or_before(at);
  if (!within(at, seen_base) && (found == ranges_.end() || at - found->first >= found->second.bytes))
    return "pageable host memory, or none";
  if (found == ranges_.end()) return "in front of all allocations";
  const auto& [start, range] = *found;
  const std::string what = range.device < 0 ? "pinned host memory" : fmt::format("device {}", range.device);
  if (at - start < range.bytes)
    return fmt::format("byte {} of {}{} bytes of {}", at - start, range.freed ? "freed " : "", range.bytes, what);
  return fmt::format("{} bytes behind an allocation of {} bytes of {}", at - start - range.bytes, range.bytes, what);
}

std::size_t Memory::total(int) const {
  const std::lock_guard lock(mutex_);
  return total_;
}
std::size_t Memory::used(int device) const {
  const std::lock_guard lock(mutex_);
  return used_[device];
}
void Memory::set_total(std::size_t bytes_each) {
  const std::lock_guard lock(mutex_);
  total_ = bytes_each;
}
int Memory::live() const {
  const std::lock_guard lock(mutex_);
  int ranges = 0;
  for (const auto& [start, range] : ranges_) ranges += range.freed ? 0 : 1;
  return ranges;
}

}  // namespace rehearsal
