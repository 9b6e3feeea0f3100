// A kernel's volatile accesses talk to the host while it runs, as those of a device do; the race checker is not told of
// them. The compiler calls these with --param=tsan-distinguish-volatile=1.
#define REHEARSAL_VOLATILE(bytes)                      \
  void __tsan_volatile_read##bytes(void*) {}           \
  void __tsan_volatile_write##bytes(void*) {}          \
  void __tsan_unaligned_volatile_read##bytes(void*) {} \
  void __tsan_unaligned_volatile_write##bytes(void*) {}

extern "C" {
REHEARSAL_VOLATILE(1)
REHEARSAL_VOLATILE(2)
REHEARSAL_VOLATILE(4)
REHEARSAL_VOLATILE(8)
REHEARSAL_VOLATILE(16)
}
