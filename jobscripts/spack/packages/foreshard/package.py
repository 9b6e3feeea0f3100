"""Spack recipe of Foreshard. UNTESTED: written without Spack at hand."""

import os

from spack.package import *


class Foreshard(CMakePackage):
    """Fully sharded data-parallel training: an engine on MPI ranks, a simulator of the same plans, one trace."""

    # The clone that this file lies in; the project has no released archives yet.
    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 4))

    version("main", branch="main")

    variant("cuda", default=False, description="build the GPU engine")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")

    depends_on("mpi")
    depends_on("hdf5+mpi+hl")
    depends_on("boost@1.74:+program_options")
    depends_on("onednn")
    depends_on("nlohmann-json")
    depends_on("fmt")
    depends_on("libcsv")
    depends_on("googletest+gmock")
    depends_on("benchmark")
    depends_on("cuda@12.4:", when="+cuda")
    depends_on("nccl", when="+cuda")

    conflicts("%gcc@:11", msg="C++20 as GCC 12 has it")
