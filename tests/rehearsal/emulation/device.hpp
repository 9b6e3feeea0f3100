#pragma once
#include <cstddef>
#include <source_location>
#include <string>

#include "vector_types.h"

/// What device functions are made of: called by a kernel's threads.
namespace rehearsal {

using Where = std::source_location;

/// Ends the kernel with an error. Does not return.
[[noreturn]] void fail(std::string what);

void barrier(const Where&);

/// One meeting of the lanes of a warp that `mask` names, each with some bytes for the others to see until `end`.
/// Lanes that do not come, or come from another line, are an error of the kernel.
struct Meeting;
Meeting& meet(unsigned mask, const void* brought, std::size_t bytes, const char* what, const Where&);
const void* brought_by(const Meeting&, unsigned lane);  ///< an error if the lane was not to come
void end(Meeting&);
/// A meeting after which memory that lanes wrote may be read by others.
void synchronise(unsigned mask, const Where&);

unsigned lane();
char* dynamic_shared_memory();

/// Copies to shared memory that only happen when they are waited for.
void copy_later(void* to, const void* from, bool present);
void end_group_of_copies();
void wait_for_groups(std::size_t but_the_latest);

/// Reads what the runtime holds, unseen by the race checker.
template <class T>
__attribute__((no_sanitize("thread"), noinline)) T unseen(const void* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
T from_lane(unsigned mask, T mine, unsigned source, const char* what, const Where& where) {
  Meeting& meeting = meet(mask, &mine, sizeof mine, what, where);
  const T value = unseen<T>(brought_by(meeting, source));
  end(meeting);
  return value;
}

}  // namespace rehearsal
