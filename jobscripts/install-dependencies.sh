#!/usr/bin/env bash
# Installs what Foreshard needs on Debian 12, Ubuntu 24.04 or later. Nothing else in the project calls apt-get install.
#
#   jobscripts/install-dependencies.sh            what builds, tests and runs Foreshard
#   jobscripts/install-dependencies.sh --check    only says what is missing (exit code 1 if anything is)
#
# Takes a tenth of a second when everything is there, about two minutes on a bare machine.
set -euo pipefail

build=(g++ cmake ninja-build ccache git ca-certificates)
mpi=(libopenmpi-dev openmpi-bin)
libraries=(libhdf5-openmpi-dev hdf5-tools libboost-program-options-dev libdnnl-dev nlohmann-json3-dev libfmt-dev libcsv-dev)
tests=(libgtest-dev libgmock-dev libbenchmark-dev clang-format)
# Wanted, not needed: analysing traces in Python, two nodes or a Slurm cluster on one machine. Their tests are skipped without them.
wanted_packages=(python3-h5py python3-numpy python3-pandas python3-matplotlib python3-jinja2 python3-pytest iproute2 munge slurmctld slurmd slurm-client shellcheck)

say() { echo "install-dependencies: $*"; }

is_installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]; }

missing_of() {
  local package
  for package in "$@"; do is_installed "$package" || echo "$package"; done
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "needs root (or sudo) to run: $*" >&2
    exit 1
  fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null
}

# Package lists may be absent or old, so a failure is tried again with new ones.
install() {
  say "installing $*"
  apt_install "$@" && return
  say "refreshing the package lists and trying again"
  as_root apt-get update -q </dev/null
  apt_install "$@"
}

main() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this system has no apt-get. Install the equivalents of: ${build[*]} ${mpi[*]} ${libraries[*]} ${tests[*]}" >&2
    exit 1
  fi
  local needed wanted
  mapfile -t needed < <(missing_of "${build[@]}" "${mpi[@]}" "${libraries[@]}" "${tests[@]}")
  mapfile -t wanted < <(missing_of "${wanted_packages[@]}")
  if [[ ${1:-} == --check ]]; then
    say "missing: ${needed[*]:-nothing}; missing but not needed: ${wanted[*]:-nothing}"
    exit $((${#needed[@]} > 0))
  fi
  if [[ ${#needed[@]} -gt 0 ]]; then install "${needed[@]}"; fi
  if [[ ${#wanted[@]} -gt 0 ]]; then install "${wanted[@]}" || say "continuing without ${wanted[*]}"; fi
  say "everything is there"
}

main "$@"
