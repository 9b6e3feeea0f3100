// PyTorch's own allocator (libc10_cuda.so) on a device that does not exist: drive_cuda_allocator FRACTION SEED CALLS
// EVERY.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>

#include <cstdio>
#include <cstdlib>

#include "fake_device.hpp"
#include "random_calls.hpp"

namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*)(DeviceIndex));
}

namespace {

using foreshard::golden::Numbers;

struct PyTorch {
  c10::cuda::CUDACachingAllocator::CUDAAllocator& allocator = *c10::cuda::CUDACachingAllocator::get();

  static cudaStream_t handle(int stream) { return reinterpret_cast<cudaStream_t>(std::uintptr_t(4096) * (stream + 1)); }
  void* allocate(std::int64_t bytes, int stream) {
    try {
      return allocator.raw_alloc_with_stream(bytes, handle(stream));
    } catch (const c10::OutOfMemoryError&) {
      return nullptr;
    }
  }
  void free(void* block, const std::vector<int>& streams) {
    c10::DataPtr data(block, block, allocator.raw_deleter(), c10::Device(c10::kCUDA, 0));
    for (const int stream : streams) allocator.recordStream(data, c10::cuda::getStreamFromExternal(handle(stream), 0));
  }
  void empty_cache() { allocator.emptyCache(); }
  std::int64_t& now() { return fake_device.now; }
  std::int64_t& busy(int stream) { return fake_device.busy[stream]; }

  Numbers numbers() const {
    const auto s = allocator.getDeviceStats(0);
    const auto &r = s.requested_bytes[0], &a = s.allocated_bytes[0], &b = s.active_bytes[0], &c = s.reserved_bytes[0];
    return {r.current,
            r.peak,
            a.current,
            a.peak,
            b.current,
            b.peak,
            c.current,
            c.peak,
            s.inactive_split_bytes[0].current,
            s.num_alloc_retries,
            s.num_ooms,
            s.num_device_alloc,
            s.num_device_free,
            s.num_sync_all_streams,
            fake_device.now};
  }
};

}  // namespace

int main(int, char** argv) {
  const double fraction = std::atof(argv[1]);
  const int calls = std::atoi(argv[3]), every = std::atoi(argv[4]);
  fake_device.capacity = foreshard::golden::device_bytes;
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  c10::cuda::detail::init_p2p_access_cache(1);
  PyTorch pytorch;
  pytorch.allocator.init(1);
  if (fraction > 0) pytorch.allocator.setMemoryFraction(fraction, 0);
  foreshard::golden::RandomCalls<PyTorch> random(pytorch, static_cast<unsigned>(std::atoi(argv[2])));
  for (int call = 1; call <= calls; ++call) {
    random.step();
    if (call % every != 0) continue;
    std::printf("%d", call);
    for (const std::int64_t number : pytorch.numbers()) std::printf(",%lld", static_cast<long long>(number));
    std::printf("\n");
  }
}
