#pragma once
#include <cstddef>

/// What the sanitizers want to be told about fibers; nothing without them.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rehearsal::sanitizer {

#if defined(__SANITIZE_ADDRESS__)
inline void begin_switch(void** left, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(left, bottom, bytes);
}
inline void end_switch(void* entered, const void** bottom, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(entered, bottom, bytes);
}
inline void forbid(const void* at, std::size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void allow(const void* at, std::size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
inline void begin_switch(void**, const void*, std::size_t) {}
inline void end_switch(void*, const void**, std::size_t*) {}
inline void forbid(const void*, std::size_t) {}
inline void allow(const void*, std::size_t) {}
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool checks_races = true;
inline void* new_identity() { return __tsan_create_fiber(0); }
inline void end_identity(void* identity) { __tsan_destroy_fiber(identity); }
inline void* identity() { return __tsan_get_current_fiber(); }
/// Goes on as another thread, which then knows what this one did.
inline void become_after(void* identity) { __tsan_switch_to_fiber(identity, 0); }
/// Goes on as another thread, which does not.
inline void become(void* identity) { __tsan_switch_to_fiber(identity, __tsan_switch_to_fiber_no_sync); }
inline void acquire(void* at) { __tsan_acquire(at); }
inline void release(void* at) { __tsan_release(at); }
#else
inline constexpr bool checks_races = false;
inline void* new_identity() { return nullptr; }
inline void end_identity(void*) {}
inline void* identity() { return nullptr; }
inline void become_after(void*) {}
inline void become(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t stack_bytes = 256 * 1024;
#else
inline constexpr std::size_t stack_bytes = 64 * 1024;
#endif

}  // namespace rehearsal::sanitizer
