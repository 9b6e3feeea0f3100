#include <fmt/format.h>

#include "rehearsal/nccl/communicator.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

namespace rehearsal {
namespace {

std::string problem_with(const Collective& o, const ncclComm& comm, const void* send, const void* receive) {
  const Memory& memory = Memory::instance();
  const int ranks = comm.clique->size();
  if (const std::string problem = memory.problem(send, o.send_bytes(ranks), comm.device); !problem.empty())
    return fmt::format("{}: send buffer: {}", o.text(), problem);
  if (const std::string problem = memory.problem(receive, o.receive_bytes(ranks), comm.device); !problem.empty())
    return fmt::format("{}: receive buffer: {}", o.text(), problem);
  return overlap_problem(o, comm.rank, ranks);
}

/// A rank that met an error of the network never comes: the others wait for it until they are aborted.
void run(Clique& clique, int rank, const Collective& part, Fate& fate) {
  watched([&] { return part.text(); });
  if (const int error = injected("collective"); error != 0) fate.error = static_cast<ncclResult_t>(error);
  if (!fate.aborted && fate.error == ncclSuccess) clique.meet(rank, part, fate);
}

/// Whichever thread asks. Also where the device has failed it counts as ended, since then it never runs.
ncclResult_t add(ncclComm& comm, const Collective& part, cudaStream_t stream) {
  const auto ended = std::shared_ptr<void>(nullptr, [fate = comm.fate](void*) { --fate->queued; });
  ++comm.fate->queued;
  const int device_of_thread = current_device();
  set_current_device(comm.device);
  const cudaError_t error = queue(stream, [clique = comm.clique, rank = comm.rank, part, fate = comm.fate, ended] {
    run(*clique, rank, part, *fate);
  });
  set_current_device(device_of_thread);
  return error == cudaSuccess ? ncclSuccess : comm.fail(ncclUnhandledCudaError, cudaGetErrorName(error));
}

/// The first collective of a communicator that does not block only makes connections: it reaches its stream when a
/// later question about errors is answered with success.
ncclResult_t connect_first(ncclComm& comm, const Collective& part, cudaStream_t stream) {
  comm.begin(
      [&comm, part, stream, asked = 0]() mutable { return asked++ == 0 ? ncclInProgress : add(comm, part, stream); });
  return ncclInProgress;
}

ncclResult_t collective(const char* name, Collective part, const void* send, void* receive, ncclComm_t comm,
                        cudaStream_t stream) {
  if (const int error = injected(name); error != 0) return static_cast<ncclResult_t>(error);
  if (const ncclResult_t error = comm->ready(); error != ncclSuccess) return error;
  if (part.operation != ncclSum && part.operation != ncclMax && part.operation != ncclMin)
    return comm->fail(ncclInvalidArgument, part.text() + ": only sum, max and min are rehearsed");
  if (current_device() != comm->device) return comm->fail(ncclInvalidUsage, "called with another device current");
  part.send = static_cast<const char*>(Memory::real(send));
  part.receive = static_cast<char*>(Memory::real(receive));
  if (part.count == 0) return ncclSuccess;
  if (const std::string problem = problem_with(part, *comm, send, receive); !problem.empty())
    return comm->fail(ncclInvalidArgument, problem);
  const bool first = !comm->used;
  comm->used = true;
  return first && !comm->blocking ? connect_first(*comm, part, stream) : add(*comm, part, stream);
}

}  // namespace
}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective("ncclAllGather", {Collective::Kind::gather, count, type}, send, receive, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclReduceScatter", {Collective::Kind::reduce_scatter, count, type, operation}, send, receive,
                    comm, stream);
}
ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return collective("ncclAllReduce", {Collective::Kind::all_reduce, count, type, operation}, send, receive, comm,
                    stream);
}
}
