#include "rehearsal/emulation/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "rehearsal/emulation/sanitizer.hpp"

#if !defined(__x86_64__)
#error "the rehearsal switches stacks on x86-64 only"
#endif

// void rehearsal_switch_stack(void** left, void* entered): registers that a function keeps go on the stack that is
// left.
asm(R"(
.text
.globl rehearsal_switch_stack
.hidden rehearsal_switch_stack
.type rehearsal_switch_stack, @function
rehearsal_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size rehearsal_switch_stack, .-rehearsal_switch_stack
)");
extern "C" void rehearsal_switch_stack(void** left, void* entered);

namespace rehearsal {
namespace {

constexpr std::size_t page = 4096;

/// Where the thread's own stack was left, and which fiber is entered.
struct Owner {
  void* at = nullptr;
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  Fiber* fiber = nullptr;
};
constinit thread_local Owner owner;

}  // namespace

Fiber::Fiber() : identity_(sanitizer::new_identity()) {
  void* stack = mmap(nullptr, page + sanitizer::stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) std::abort();
  stack_ = static_cast<char*>(stack);
  mprotect(stack_, page, PROT_NONE);
}

Fiber::~Fiber() {
  sanitizer::end_identity(identity_);
  munmap(stack_, page + sanitizer::stack_bytes);
}

void Fiber::start(void (*entry)()) {
  entry_ = entry;
  sanitizer::allow(stack_ + page, sanitizer::stack_bytes);
  auto* top = reinterpret_cast<void**>(stack_ + page + sanitizer::stack_bytes);
  *--top = nullptr;  // aligns the stack as a call does
  *--top = reinterpret_cast<void*>(&Fiber::begin);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  at_ = top;
}

void Fiber::begin() {
  sanitizer::end_switch(owner.fiber->fake_stack_, &owner.bottom, &owner.bytes);
  owner.fiber->entry_();
  std::abort();
}

void Fiber::enter() {
  owner.fiber = this;
  sanitizer::begin_switch(&owner.fake_stack, stack_ + page, sanitizer::stack_bytes);
  rehearsal_switch_stack(&owner.at, at_);
  sanitizer::end_switch(owner.fake_stack, nullptr, nullptr);
}

void Fiber::leave() {
  Fiber& self = *owner.fiber;
  sanitizer::begin_switch(&self.fake_stack_, owner.bottom, owner.bytes);
  rehearsal_switch_stack(&self.at_, owner.at);
  sanitizer::end_switch(self.fake_stack_, &owner.bottom, &owner.bytes);
}

}  // namespace rehearsal
