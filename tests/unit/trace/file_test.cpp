#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "tiny_run.hpp"
#include "trace/reader.hpp"
#include "trace/writer.hpp"

namespace foreshard::trace {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& path) {
  try {
    read(path);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "read without complaint";
}

void set_text(const std::string& path, const char* name, const char* value) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Adelete(file, name);
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  const hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, &value);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Fclose(file);
}

TEST(TraceFile, RoundTripKeepsThePlan) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 2, 3);
  const Trace trace = read(folder.file("t.h5"));
  const plan::Plan plan = tiny_plan();
  EXPECT_EQ(plan::hash_of(trace.plan), plan::hash_of(plan));
  EXPECT_EQ(trace.plan_hash, fmt::format("{:016x}", plan::hash_of(plan)));
  EXPECT_EQ(trace.plan.unit_names, plan.unit_names);
  EXPECT_EQ(trace.plan.arena_bytes, plan.arena_bytes);
  EXPECT_EQ(trace.plan.micro_batch_tokens, 16);
  EXPECT_EQ(trace.plan.units[0].pieces[0].elements, 250);
  EXPECT_EQ(trace.plan.units[0].gradient_shard, plan.units[0].gradient_shard);
  EXPECT_FALSE(trace.plan.norm.valid());
  ASSERT_EQ(trace.plan.segments.size(), 2u);
  EXPECT_EQ(trace.plan.segments[0].points, plan.segments[0].points);
  ASSERT_EQ(trace.plan.ops.size(), 5u);
  EXPECT_EQ(trace.plan.ops[3].kind, plan::OpKind::reduce_scatter);
  EXPECT_EQ(trace.plan.ops[3].cost.flops, 1000);
  EXPECT_EQ(trace.plan.ops[3].wire_bytes, 512);
  EXPECT_EQ(trace.plan.buffers[3].memory, plan::MemoryClass::unsharded_gradients);
}

TEST(TraceFile, RoundTripKeepsEveryRow) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 2, 3, Kind::predicted);
  const Trace trace = read(folder.file("t.h5"));
  EXPECT_TRUE(trace.complete);
  EXPECT_EQ(trace.run.kind, Kind::predicted);
  EXPECT_EQ(trace.run.run_id, "tiny");
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.ranks[1].host, "host");
  EXPECT_EQ(trace.ranks[1].local_rank, 1);
  ASSERT_EQ(trace.rows.size(), 2u * 3 * 5);
  ASSERT_EQ(trace.events.size(), 2u);
  const Event& last = trace.events[1].back();
  EXPECT_EQ(last.start_ns, 3401);
  EXPECT_EQ(last.op, 4u);
  EXPECT_EQ(last.step, 3);
  EXPECT_EQ(last.micro_batch, 1);
  EXPECT_EQ(trace.events[1][10].received_bytes, 512u);
  EXPECT_EQ(trace.rows[3].lane, plan::Lane::reduce);
  EXPECT_EQ(trace.rows[3].kind, plan::OpKind::reduce_scatter);
  EXPECT_EQ(trace.rows[3].bytes, 384u);
  ASSERT_EQ(trace.steps.size(), 6u);
  EXPECT_EQ(trace.steps[5].loss, 1.0);
  EXPECT_EQ(trace.memory[5].bytes[4], 1024);
  ASSERT_TRUE(trace.summary.has_value());
  EXPECT_EQ(trace.summary->collectives, tiny_summary(tiny_plan()).collectives);
  EXPECT_EQ(trace.summary->rss_bytes, 1'000'000);
  EXPECT_EQ(trace.summary->step_time_s, 500e-9);
}

TEST(TraceFile, MoreRowsThanAChunk) {
  const TemporaryFolder folder;
  constexpr std::int32_t steps = 20'000;  // 100,000 events in 10 flushes
  {
    Writer writer(folder.file("t.h5"), {}, tiny_plan(), {});
    for (std::int32_t step = 0; step < steps; ++step) {
      writer.append(0, tiny_step(1000 * step, step));
      if (step % 2000 == 0) writer.flush();
    }
    writer.close();
  }
  const Trace trace = read(folder.file("t.h5"));
  ASSERT_EQ(trace.events[0].size(), 5u * steps);
  for (std::size_t i = 0; i < trace.events[0].size(); ++i)
    ASSERT_EQ(trace.events[0][i].start_ns, static_cast<std::int64_t>(1000 * (i / 5) + 100 * (i % 5)));
}

TEST(TraceFile, AFolderThatIsMissingIsNamed) {
  const TemporaryFolder folder;
  try {
    write_tiny(folder.file("none/t.h5"), 1, 1);
    ADD_FAILURE() << "written";
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("there is no folder " + folder.file("none")));
  }
}

TEST(TraceFile, IsNotOverwrittenUnlessForced) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  write_tiny(path, 1, 1);
  try {
    write_tiny(path, 1, 2);
    ADD_FAILURE() << "overwritten";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
  EXPECT_EQ(read(path).events[0].size(), 5u);
  {
    Writer writer(path, {}, tiny_plan(), {}, true);
    writer.close();
  }
  EXPECT_TRUE(read(path).rows.empty());
}

TEST(TraceFile, LeftoverPartIsNotOverwritten) {
  const TemporaryFolder folder;
  { const Writer killed(folder.file("t.h5"), {}, tiny_plan(), {}); }
  EXPECT_THROW(Writer(folder.file("t.h5"), {}, tiny_plan(), {}), InputError);
}

TEST(TraceFile, SurvivesKillToTheLastFlush) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Writer writer(folder.file("t.h5"), {.run_id = "killed"}, tiny_plan(), {});
    for (std::int32_t step = 0; step < 7; ++step) {
      writer.append(0, tiny_step(1000 * step, step));
      if (step == 3) writer.flush();  // steps 4 to 6 are lost
    }
    [[maybe_unused]] const auto written = write(ready[1], "x", 1);
    pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  EXPECT_FALSE(std::filesystem::exists(folder.file("t.h5")));
  const Trace trace = read(folder.file("t.h5.part"));
  EXPECT_FALSE(trace.complete);
  EXPECT_EQ(trace.run.run_id, "killed");
  EXPECT_FALSE(trace.summary.has_value());
  ASSERT_EQ(trace.events[0].size(), 20u);
  EXPECT_EQ(trace.events[0].back().step, 3);
}

TEST(TraceFile, OneHalfIsSoundWheneverTheWriterIsKilled) {
  for (int trial = 0; trial < 6; ++trial) {
    const TemporaryFolder folder;
    const std::string part = folder.file("t.h5.part");
    int flushed[2];
    ASSERT_EQ(pipe(flushed), 0);
    const pid_t child = fork();
    if (child == 0) {
      Writer writer(folder.file("t.h5"), {}, tiny_plan(), {});
      for (std::int32_t step = 1;; ++step) {  // flushes all the time, so that it is most likely killed within a flush
        writer.append(0, tiny_step(1000 * step, step));
        writer.flush();
        [[maybe_unused]] const auto written = write(flushed[1], "x", 1);
      }
    }
    std::size_t flushes = 0;
    for (char byte; flushes < 2 + static_cast<std::size_t>(trial) % 3 && ::read(flushed[0], &byte, 1) == 1;) ++flushes;
    usleep(static_cast<useconds_t>(1 + 5555 * trial));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(flushed[1]);
    for (char byte; ::read(flushed[0], &byte, 1) == 1;) ++flushes;
    close(flushed[0]);
    const Trace trace = read(part);
    ASSERT_GE(trace.rows.size(), 5 * (flushes - 1));
    for (std::size_t i = 0; i < trace.rows.size(); ++i)
      ASSERT_EQ(trace.events[0][i].start_ns, static_cast<std::int64_t>(1000 * (1 + i / 5) + 100 * (i % 5)));
    EXPECT_EQ(trace.steps.size(), 0u);
  }
}

TEST(TraceFile, PartLeftInTheMiddleOfAFlushIsNotTrusted) {
  const TemporaryFolder folder;
  { const Writer killed(folder.file("t.h5"), {}, tiny_plan(), {}); }
  const hid_t file = H5Fopen(folder.file("t.h5.part").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t attribute = H5Aopen(file, "flushing", H5P_DEFAULT);
  const std::int64_t yes = 1;
  H5Awrite(attribute, H5T_NATIVE_INT64, &yes);
  H5Aclose(attribute);
  H5Fclose(file);
  EXPECT_EQ(read(folder.file("t.h5.part")).path, folder.file("t.h5.part2"));
  std::filesystem::remove(folder.file("t.h5.part2"));
  EXPECT_THAT(refusal(folder.file("t.h5.part")), HasSubstr("stopped while it changed the file"));
}

TEST(TraceFile, CanBeReadWhileItIsWritten) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();  // before the file is open: HDF5 shares an open file within one process
  if (child == 0) {
    char byte;
    if (::read(ready[0], &byte, 1) != 1) _exit(2);
    try {
      _exit(read(folder.file("t.h5.part")).events[0].size() == 5 ? 0 : 1);
    } catch (const std::exception&) {
      _exit(3);
    }
  }
  Writer writer(folder.file("t.h5"), {}, tiny_plan(), {});
  writer.append(0, tiny_step(0, 1));
  writer.flush();
  ASSERT_EQ(write(ready[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(TraceFile, MissingFileIsNamed) {
  EXPECT_THAT(refusal("/nowhere/t.h5"), AllOf(HasSubstr("/nowhere/t.h5"), HasSubstr("no such file")));
}

TEST(TraceFile, OtherFilesAreRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("text.h5")) << std::string(10'000, 'x');
  EXPECT_THAT(refusal(folder.file("text.h5")), AllOf(HasSubstr("text.h5"), HasSubstr("not an HDF5 file")));
  write_tiny(folder.file("t.h5"), 1, 1);
  set_text(folder.file("t.h5"), "format", "something else");
  EXPECT_THAT(refusal(folder.file("t.h5")), AllOf(HasSubstr("t.h5"), HasSubstr("not a trace")));
}

TEST(TraceFile, NewerMajorVersionIsRefusedNewerMinorRead) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 1, 1);
  set_text(folder.file("t.h5"), "format_version", "1.7");
  EXPECT_EQ(read(folder.file("t.h5")).format_version, "1.7");
  set_text(folder.file("t.h5"), "format_version", "2.0");
  EXPECT_THAT(refusal(folder.file("t.h5")), AllOf(HasSubstr("2.0"), HasSubstr("newer Foreshard")));
}

/// Of the tiny run's events: their kinds in an enum that has one more name, and the last of them of that kind if asked.
void store_kinds_with_a_newer_one(const std::string& path, bool use_it) {
  std::vector<std::uint8_t> values(read(path).rows.size());
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t kinds = H5Dopen2(file, "/events/kind", H5P_DEFAULT), stored = H5Dget_type(kinds), type = H5Tcopy(stored);
  H5Dread(kinds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  const auto newer = static_cast<std::uint8_t>(H5Tget_nmembers(type));
  H5Tenum_insert(type, "a_newer_kind", &newer);
  if (use_it) values.back() = newer;
  H5Ldelete(file, "/events/kind", H5P_DEFAULT);
  const hsize_t rows = values.size();
  const hid_t space = H5Screate_simple(1, &rows, nullptr);
  const hid_t made = H5Dcreate2(file, "/events/kind", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  for (const hid_t dataset : {made, kinds}) H5Dclose(dataset);
  for (const hid_t copy : {stored, type}) H5Tclose(copy);
  H5Sclose(space);
  H5Fclose(file);
}

TEST(TraceFile, NewerKindsAreReadUnlessOneIsUsed) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 1, 1);
  const auto kind_of_last = [&] { return read(folder.file("t.h5")).rows.back().kind; };
  const auto written = kind_of_last();
  store_kinds_with_a_newer_one(folder.file("t.h5"), false);
  EXPECT_EQ(kind_of_last(), written);
  write_tiny(folder.file("u.h5"), 1, 1);
  store_kinds_with_a_newer_one(folder.file("u.h5"), true);
  EXPECT_THAT(refusal(folder.file("u.h5")), AllOf(HasSubstr("kind"), HasSubstr("a newer Foreshard wrote it")));
}

TEST(TraceFile, EveryTruncationIsRefused) {
  const TemporaryFolder folder;
  write_tiny(folder.file("whole.h5"), 1, 2);
  const auto size = std::filesystem::file_size(folder.file("whole.h5"));
  for (const std::uintmax_t kept : {std::uintmax_t{0}, std::uintmax_t{4}, size / 10, size / 2, size - 1}) {
    std::filesystem::copy_file(folder.file("whole.h5"), folder.file("cut.h5"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder.file("cut.h5"), kept);
    EXPECT_THAT(refusal(folder.file("cut.h5")), HasSubstr("cut.h5")) << kept << " of " << size << " bytes";
  }
}

TEST(TraceFile, UnknownDatasetsAreIgnoredMissingOnesNamed) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 1, 1);
  hid_t file = H5Fopen(folder.file("t.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Gclose(H5Gcreate2(file, "/events/later", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Fclose(file);
  EXPECT_EQ(read(folder.file("t.h5")).rows.size(), 5u);
  file = H5Fopen(folder.file("t.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "/events/start_ns", H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(refusal(folder.file("t.h5")), HasSubstr("start_ns"));
}

TEST(TraceWriter, RefusesEventsOutsideThePlan) {
  const TemporaryFolder folder;
  Writer writer(folder.file("t.h5"), {}, tiny_plan(), {});
  EXPECT_THROW(writer.append(0, std::vector<Event>{{.op = 5}}), ContractError);
  EXPECT_THROW(writer.append(1, std::vector<Event>{{.op = 0}}), ContractError);
  writer.close();
  EXPECT_THROW(writer.flush(), ContractError);
}

}  // namespace
}  // namespace foreshard::trace
