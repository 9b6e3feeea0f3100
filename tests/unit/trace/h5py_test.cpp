#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tiny_run.hpp"

namespace foreshard::trace {
namespace {

constexpr const char* python = "/usr/bin/python3";

/// What SCHEMA.md promises to a reader that knows nothing of this library.
constexpr const char* script = R"(
import sys, h5py
f = h5py.File(sys.argv[1], "r")
text = lambda v: v.decode() if isinstance(v, bytes) else v
assert text(f.attrs["format"]) == "foreshard-trace" and text(f.attrs["format_version"]) == "1.1"
assert text(f.attrs["kind"]) == "measured" and f.attrs["world_size"] == 2
e = f["events"]
assert e["start_ns"][:].tolist()[:5] == [1000, 1100, 1200, 1300, 1400]
lanes = {v: k for k, v in h5py.check_enum_dtype(e["lane"].dtype).items()}
assert [lanes[v] for v in e["lane"][:5]] == ["gather", "compute", "compute", "reduce", "compute"]
assert e["unit"][:5].tolist() == [0] * 5
b = f["batches"]
rank, first, count = (b[c][1] for c in ("rank", "first_row", "row_count"))
assert set(e["rank"][first:first + count]) == {rank}
assert f["plan/ops/accumulate"].dtype == bool
assert f["plan/units/name"][0].decode() == "root" and f["ranks/host"][1].decode() == "host"
assert f["summary/arena_bytes"][()] == 3200
group = f
while "default" in group.attrs: group = group[text(group.attrs["default"])]
assert text(group.attrs["NX_class"]) == "NXdata"
assert group[text(group.attrs["signal"])].shape == group[text(group.attrs["axes"])].shape == (3,)
def described(name, node):
    if isinstance(node, h5py.Dataset): assert node.attrs["units"] and node.attrs["long_name"], name
f.visititems(described)
assert e["start_ns"].chunks == (16384,) and e["start_ns"].shuffle and e["start_ns"].compression_opts == 1
)";

TEST(TraceSchema, IsReadableWithH5py) {
  if (std::system(("test -x " + std::string(python) + " && " + python + " -c 'import h5py' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << python << " has no h5py";
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 2, 3);
  std::ofstream(folder.file("read.py")) << script;
  EXPECT_EQ(std::system(
                fmt::format("env -u LD_PRELOAD {} {} {}", python, folder.file("read.py"), folder.file("t.h5")).c_str()),
            0);
}

}  // namespace
}  // namespace foreshard::trace
