/* A device that no process uses. */
#define FAKE(name) int name(void) { return 0; }
FAKE(nvmlInit_v2)
FAKE(nvmlDeviceGetHandleByPciBusId_v2)
FAKE(nvmlDeviceGetNvLinkRemoteDeviceType)
FAKE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
FAKE(nvmlSystemGetCudaDriverVersion_v2)
FAKE(nvmlDeviceGetGpuFabricInfoV)
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, void* processes) {
  (void)device, (void)processes;
  *count = 0;
  return 0;
}
