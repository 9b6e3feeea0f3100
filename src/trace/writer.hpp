#pragma once
#include <memory>
#include <span>
#include <string>

#include "plan/plan.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// Writes one trace of all ranks, laid out as SCHEMA.md says. One process writes; it hands in the other ranks' rows
/// too.
///
/// Until `close` there are two files, `<path>.part` and `<path>.part2`, which flushes write in turns: whenever the
/// process is killed, one of them is sound and has everything up to the last `flush` that ended, or the one before if
/// it was killed within a flush. `read` takes the better one. Rows are only kept in memory until they are flushed; no
/// other call touches the disk. A flush recompresses the last chunk of every column (about 3 ms): call it every few
/// seconds, between steps. Errors of the disk or of HDF5 are LibraryErrors that name the file.
class Writer {
 public:
  /// Creates the file and writes what is known of the run. `ranks` are all of the world, or none where there are no
  /// hosts. Throws InputError if `path` or `<path>.part` exists, unless `force`: then both are replaced.
  Writer(std::string path, const RunInfo& run, const plan::Plan& plan, std::span<const RankInfo> ranks,
         bool force = false);

  /// Leaves the two parts as of their last flushes if `close` was not called.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Adds events of one rank, each lane in order of start. Events of one step may come in several calls.
  void append(std::uint32_t rank, std::span<const Event> events);
  void append(const StepRow& step);
  void append(const MemoryRow& memory);

  /// The last summary set before `close` is written.
  void set_summary(const Summary& summary);

  void flush();

  /// Writes everything and gives the file its name. Nothing may be appended afterwards.
  void close();

 private:
  class File;
  File& open();  ///< throws ContractError after `close`
  std::unique_ptr<File> file_;
};

}  // namespace foreshard::trace
