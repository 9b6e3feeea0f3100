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
    depends_on("onednn@2.6:")
    depends_on("nlohmann-json")
    depends_on("fmt")
    depends_on("libcsv")
    depends_on("googletest+gmock")
    depends_on("benchmark")
    depends_on("cuda@12.4:", when="+cuda")
    depends_on("nccl", when="+cuda")

    conflicts("%gcc@:11", msg="C++20 as GCC 12 has it")

    def cmake_args(self):
        return [
            self.define_from_variant("FORESHARD_CUDA", "cuda"),
            # GCC's name of Spack's target: x86-64-v3, skylake-avx512, zen3.
            self.define("FORESHARD_PROCESSOR", {"icelake": "icelake-server"}.get(self.spec.target.name, self.spec.target.name.replace("_", "-"))),
        ]
