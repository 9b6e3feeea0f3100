#include "comm/mpi_host.hpp"

#include <algorithm>
#include <utility>

namespace foreshard::comm {

namespace {

constexpr int tag = 0;

/// Calls `transfer(data, int size, request)` for one piece after the other.
template <class Byte, class Transfer>
void in_messages(std::span<Byte> data, std::int64_t longest_message_bytes, std::vector<MPI_Request>& requests,
                 Transfer transfer) {
  while (!data.empty()) {
    const std::size_t length = std::min(data.size(), static_cast<std::size_t>(longest_message_bytes));
    transfer(data.data(), static_cast<int>(length), &requests.emplace_back());
    data = data.subspan(length);
  }
}

}  // namespace

MpiHost::MpiHost(MpiComm comm, std::int64_t longest_message_bytes)
    : comm_(std::move(comm)), longest_message_bytes_(longest_message_bytes), rank_(comm_.rank()), size_(comm_.size()) {}

void MpiHost::barrier(const AbortFlag& abort) const {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_call("MPI_Ibarrier", MPI_Ibarrier, get(), &request);
  wait_for({&request, 1}, abort, "barrier");
}

void MpiHost::broadcast(std::span<std::byte> data, int root, const AbortFlag& abort) const {
  std::vector<MPI_Request> requests;
  in_messages(data, longest_message_bytes_, requests, [&](std::byte* piece, int length, MPI_Request* request) {
    mpi_call("MPI_Ibcast", MPI_Ibcast, piece, length, MPI_BYTE, root, get(), request);
  });
  wait_for(requests, abort, "broadcast");
}

std::vector<std::vector<std::byte>> MpiHost::gather(std::span<const std::byte> data, const AbortFlag& abort) const {
  const std::vector<std::uint64_t> sizes = all_gather(std::uint64_t{data.size()}, abort, "gather");
  std::vector<std::vector<std::byte>> gathered;
  std::vector<MPI_Request> requests;
  if (rank_ != 0) {
    in_messages(data, longest_message_bytes_, requests, [&](const std::byte* piece, int length, MPI_Request* request) {
      mpi_call("MPI_Isend", MPI_Isend, piece, length, MPI_BYTE, 0, tag, get(), request);
    });
    wait_for(requests, abort, "gather");
    return gathered;
  }
  gathered.emplace_back(data.begin(), data.end());
  for (int peer = 1; peer < size_; ++peer) {
    in_messages(std::span(gathered.emplace_back(sizes[peer])), longest_message_bytes_, requests,
                [&](std::byte* piece, int length, MPI_Request* request) {
                  mpi_call("MPI_Irecv", MPI_Irecv, piece, length, MPI_BYTE, peer, tag, get(), request);
                });
  }
  wait_for(requests, abort, "gather");
  return gathered;
}

void MpiHost::all_gather_bytes(const void* value, void* values, std::size_t size_bytes, const AbortFlag& abort,
                               std::string_view call) const {
  MPI_Request request = MPI_REQUEST_NULL;
  const int length = static_cast<int>(size_bytes);
  mpi_call("MPI_Iallgather", MPI_Iallgather, value, length, MPI_BYTE, values, length, MPI_BYTE, get(), &request);
  wait_for({&request, 1}, abort, call);
}

}  // namespace foreshard::comm
