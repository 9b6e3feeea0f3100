// Stands in for the driver, libcuda.so.1, where cuDNN makes plans without a device: what its compiler has made "loads",
// and nothing can be launched. These are the functions that cuDNN 9.19 looks for.
#include <cstddef>
#include <cstdint>

namespace {

constexpr int success = 0, no_device = 100, driver_version = 13000, cluster_size = 8;
constexpr std::size_t limit = 1024;

int give_object(void** to) {
  static int object;
  *to = &object;
  return success;
}
int give_text(const char** to) {
  *to = "an error of a driver that is not there";
  return success;
}
int give_number(int* to, int value) {
  *to = value;
  return success;
}

}  // namespace

extern "C" {
int cuGetErrorName(int, const char** name) { return give_text(name); }
int cuGetErrorString(int, const char** text) { return give_text(text); }
int cuDriverGetVersion(int* version) { return give_number(version, driver_version); }
int cuDeviceGetCount(int* count) { return give_number(count, 0); }
int cuDeviceGet(int*, int) { return no_device; }
int cuCtxGetCurrent(void** context) { return give_object(context); }
int cuCtxGetLimit(std::size_t* value, int) { return *value = limit, success; }
int cuCtxPopCurrent(void** context) { return give_object(context); }
int cuCtxPushCurrent(void*) { return success; }
int cuStreamGetCtx(void*, void** context) { return give_object(context); }
int cuLinkCreate(unsigned, void*, void*, void**) { return no_device; }
int cuLinkAddData(void*, int, void*, std::size_t, const char*, unsigned, void*, void*) { return no_device; }
int cuLinkComplete(void*, void**, std::size_t*) { return no_device; }
int cuLinkDestroy(void*) { return success; }
int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
  return give_object(library);
}
int cuLibraryLoadFromFile(void** library, const char*, void*, void*, unsigned, void*, void*, unsigned) {
  return give_object(library);
}
int cuLibraryUnload(void*) { return success; }
int cuLibraryGetKernel(void** kernel, void*, const char*) { return give_object(kernel); }
int cuKernelGetFunction(void** function, void*) { return give_object(function); }
int cuKernelGetAttribute(int* value, int, void*, int) { return give_number(value, 0); }
int cuKernelSetAttribute(int, int, void*, int) { return success; }
int cuModuleLoadData(void** module_, const void*) { return give_object(module_); }
int cuModuleLoadDataEx(void** module_, const void*, unsigned, void*, void*) { return give_object(module_); }
int cuModuleUnload(void*) { return success; }
int cuModuleGetFunction(void** function, void*, const char*) { return give_object(function); }
int cuFuncSetAttribute(void*, int, int) { return success; }
int cuOccupancyMaxPotentialClusterSize(int* size, void*, const void*) { return give_number(size, cluster_size); }
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) {
  return no_device;
}
int cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**) {
  return no_device;
}
int cuLaunchKernelEx(const void*, void*, void**, void**) { return no_device; }
}
