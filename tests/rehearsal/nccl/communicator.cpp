#include "rehearsal/nccl/communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "rehearsal/runtime/job.hpp"
#include "rehearsal/runtime/state.hpp"

void ncclComm::begin(std::function<ncclResult_t()> work) {
  const std::lock_guard lock(mutex);
  pending = std::move(work);
}

ncclResult_t ncclComm::fail(ncclResult_t error, const std::string& what) {
  rehearsal::note_nccl_error(what);
  rehearsal::report("NCCL: " + what);
  return error;
}

ncclResult_t ncclComm::state() {
  const std::lock_guard lock(mutex);
  if (fate->error != ncclSuccess) return fate->error;
  if (!pending) return ncclSuccess;
  const ncclResult_t result = pending();
  if (result != ncclInProgress) pending = {};
  return result;
}

ncclResult_t ncclComm::ready() {
  const std::lock_guard lock(mutex);
  if (fate->error != ncclSuccess) return fate->error;
  if (finalized) return fail(ncclInvalidArgument, "the communicator is finalized");
  if (pending) return fail(ncclInvalidArgument, "a call before the one before returned ncclSuccess");
  return ncclSuccess;
}

namespace rehearsal {
namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};
LastError& last_error_of_all() {
  static auto* last = new LastError;
  return *last;
}

struct Cliques {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Clique>> by_id;
  std::uint64_t ids = 0;
};
Cliques& cliques() {
  static auto* all = new Cliques;
  return *all;
}

std::shared_ptr<Clique> clique_of(const ncclUniqueId& id, int ranks) {
  const std::lock_guard lock(cliques().mutex);
  const std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  auto& known = cliques().by_id[name];
  auto clique = known.lock();
  if (!clique) known = clique = make_clique(name, ranks);
  return clique;
}

bool is_blocking(const ncclConfig_t* config, bool otherwise) {
  return config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT ? otherwise : config->blocking != 0;
}

/// Waits until nothing is pending, if it may.
ncclResult_t finish(ncclComm& comm) {
  while (comm.blocking && comm.state() == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return comm.blocking ? comm.fate->error.load() : ncclInProgress;
}

ncclResult_t take_part(ncclComm& part, const Clique& parent, std::size_t number, int parent_rank) {
  const Clique::Split* split = parent.split(number);
  if (split == nullptr) return ncclInProgress;
  const int color = split->wishes[parent_rank]->color;
  if (color >= 0) part.clique = split->parts.at(color);
  part.rank = split->ranks[parent_rank];
  return ncclSuccess;
}

template <class Body>
ncclResult_t call_nccl(const char* name, Body body) {
  if (const int error = injected(name); error != 0) return static_cast<ncclResult_t>(error);
  return body();
}

}  // namespace

void note_nccl_error(const std::string& what) {
  const std::lock_guard lock(last_error_of_all().mutex);
  last_error_of_all().text = what;
}

}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call_nccl("ncclGetUniqueId", [&] {
    const std::lock_guard lock(cliques().mutex);
    std::memset(id->internal, 0, sizeof id->internal);
    fmt::format_to(id->internal, "rehearsal-{}-{}", getpid(), ++cliques().ids);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return call_nccl("ncclCommInitRankConfig", [&] {
    *made = nullptr;
    const auto clique = clique_of(id, ranks);
    auto comm = std::make_unique<ncclComm>();
    comm->rank = rank;
    comm->device = current_device();
    comm->blocking = is_blocking(config, true);
    comm->clique = clique;
    if (clique->size() != ranks)
      return comm->fail(ncclInvalidUsage,
                        fmt::format("rank {} says {} ranks, others said {}", rank, ranks, clique->size()));
    if (const std::string problem = clique->join(rank, physical_device(comm->device)); !problem.empty())
      return comm->fail(ncclInvalidUsage, problem);
    comm->begin([clique] { return clique->complete() ? ncclSuccess : ncclInProgress; });
    *made = comm.release();
    ++live_communicators;
    return finish(**made);
  });
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  return call_nccl("ncclCommSplit", [&] {
    *made = nullptr;
    if (const ncclResult_t error = parent->ready(); error != ncclSuccess) return error;
    const std::size_t number = parent->splits++;
    parent->clique->ask_for_split(parent->rank, number, {color, key});
    auto* part = new ncclComm;
    part->device = parent->device;
    part->blocking = is_blocking(config, parent->blocking);
    part->begin([part, clique = parent->clique, number, rank = parent->rank] {
      return take_part(*part, *clique, number, rank);
    });
    parent->begin(
        [clique = parent->clique, number] { return clique->split(number) != nullptr ? ncclSuccess : ncclInProgress; });
    ++live_communicators;
    *made = part;
    finish(*part);
    const ncclResult_t result = finish(*parent);
    if (color < 0) {
      delete part;
      *made = nullptr;
      --live_communicators;
    }
    return result;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return call_nccl("ncclCommGetAsyncError", [&] { return *error = comm->state(), ncclSuccess; });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return call_nccl("ncclCommFinalize", [&] {
    if (const ncclResult_t error = comm->ready(); error != ncclSuccess) return error;
    comm->finalized = true;
    comm->begin([fate = comm->fate] { return fate->queued == 0 ? ncclSuccess : ncclInProgress; });
    return finish(*comm);
  });
}

/// Without a finalize before it waits for the collectives that are queued, as NCCL does.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  while (comm->fate->queued != 0 && comm->fate->error == ncclSuccess)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  delete comm;
  --live_communicators;
  return ncclSuccess;
}

/// This rank's collectives end where they are; those of others go on waiting for it, until they are aborted too.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  comm->fate->aborted = true;
  if (comm->clique) comm->clique->wake();
  delete comm;
  --live_communicators;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) { return *count = comm->clique->size(), ncclSuccess; }
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) { return *rank = comm->rank, ncclSuccess; }
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) { return *device = comm->device, ncclSuccess; }

/// Of any communicator, as NCCL's: it does not use the parameter.
const char* ncclGetLastError(ncclComm_t) {
  thread_local std::string copy;
  const std::lock_guard lock(last_error_of_all().mutex);
  copy = last_error_of_all().text;
  return copy.c_str();
}
const char* ncclGetErrorString(ncclResult_t result) {
  static constexpr const char* texts[] = {"no error",
                                          "unhandled cuda error",
                                          "unhandled system error",
                                          "internal error",
                                          "invalid argument",
                                          "invalid usage",
                                          "remote process exited or there was a network error",
                                          "NCCL operation in progress"};
  return result >= 0 && result <= ncclInProgress ? texts[result] : "unknown result code";
}
}
