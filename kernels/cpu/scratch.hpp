#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace foreshard::kernels::cpu {

/// Memory that a thread keeps for its next call, aligned to 64 bytes. Its content is undefined.
class Scratch {
 public:
  /// At least `count` elements, valid until the next call.
  template <class T>
  T* of(std::size_t count) {
    return static_cast<T*>(bytes(count * sizeof(T)));
  }

 private:
  struct Free {
    void operator()(void* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  void* bytes(std::size_t size) {
    if (size > size_) {
      data_.reset();
      data_.reset(::operator new (size, std::align_val_t{64}));
      size_ = size;
    }
    return data_.get();
  }
  std::unique_ptr<void, Free> data_;
  std::size_t size_ = 0;
};

/// The calling thread's scratch for one kernel call.
inline Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace foreshard::kernels::cpu
