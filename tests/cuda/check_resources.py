"""Reads what ptxas said of each object's kernels (OBJECT.resources, kept by cmake/keep_resources.sh), prints a table of the most
that the kernels of each file and architecture take, and fails if a kernel spills registers, takes more than a block of its
size may have, or if an architecture is missing.

usage: check_resources.py OBJECT...
"""

import collections
import pathlib
import re
import sys

ARCHITECTURES = {"sm_80", "sm_90", "sm_100"}
KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(sm_\d+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
REGISTERS_OF_MULTIPROCESSOR = 65536
# The most threads that a block of a file's kernels has, where it is not 256.
THREADS = {"attention": 128, "attention_tiles": 128, "attention_tiles_backward": 128, "embedding": 256}


class Kernel(collections.namedtuple("Kernel", "name architecture stack spills registers shared")):
    """One kernel on one architecture; bytes of stack, of spills (stored and loaded) and of static shared memory."""


def kernels_of(report):
    """The kernels of a report, in order."""
    name = architecture = None
    stack = spills = 0
    for line in report.splitlines():
        if found := KERNEL.search(line):
            name, architecture = found.groups()
        elif found := STACK.search(line):
            stack, stored, loaded = map(int, found.groups())
            spills = stored + loaded
        elif name and (found := USED.search(line)):
            shared = SHARED.search(line)
            yield Kernel(name, architecture, stack, spills, int(found[1]), int(shared[1]) if shared else 0)
            name = None


def problems_of(file, kernels):
    """What is wrong with the kernels of one file."""
    missing = ARCHITECTURES - {kernel.architecture for kernel in kernels}
    if missing:
        yield f"{file}: no code for {', '.join(sorted(missing))}"
    limit = REGISTERS_OF_MULTIPROCESSOR // THREADS.get(file, 256)
    for kernel in kernels:
        if kernel.spills:
            yield f"{file}: {kernel.name} spills {kernel.spills} bytes on {kernel.architecture}"
        if kernel.registers > limit:
            yield f"{file}: {kernel.name} takes {kernel.registers} registers of {limit} on {kernel.architecture}"


def print_table(file, kernels):
    for architecture in sorted(ARCHITECTURES, key=lambda name: int(name[3:])):
        here = [kernel for kernel in kernels if kernel.architecture == architecture]
        if here:
            most = [max(getattr(kernel, field) for kernel in here) for field in ("registers", "shared", "stack")]
            print(f"{file:26} {architecture:7} {len(here):7} {most[0]:9} {most[1]:12} {most[2]:11}")


def main(objects):
    reports = [pathlib.Path(name + ".resources") for name in objects if name.endswith(".cu.o")]
    if not reports:
        sys.exit("no objects of kernels given")
    print(f"{'file':26} {'arch':7} {'kernels':>7} {'registers':>9} {'shared bytes':>12} {'stack bytes':>11}")
    problems = []
    for report in sorted(reports):
        file = report.name.split(".")[0]
        kernels = list(kernels_of(report.read_text()))
        if kernels:
            print_table(file, kernels)
            problems += problems_of(file, kernels)
    print(*problems, sep="\n", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
