"""Spack recipe of libcsv, which Spack itself does not have. UNTESTED: written without Spack at hand."""

from spack.package import *


class Libcsv(AutotoolsPackage):
    """A small library that reads and writes CSV."""

    homepage = "https://github.com/rgamble/libcsv"
    git = "https://github.com/rgamble/libcsv.git"

    version("master", branch="master")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
