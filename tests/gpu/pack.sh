#!/usr/bin/env bash
# On the build machine: makes build/gpu-day/pack.tar.gz, all that tests/gpu/run.sh needs on a machine with a GPU and little else.
#
#   tests/gpu/pack.sh           builds (in build/pack), packs, and tries the pack
#   tests/gpu/pack.sh --try     only tries the pack that is there
#
# Programs are built here, for every x86-64 processor with AVX2 and for all of the project's GPU architectures. With them go the
# shared libraries that they need, the C library and its loader included, but for the driver, cuBLASLt and NCCL, which are too large
# and which any machine with PyTorch or the CUDA toolkit has: run.sh links those into the pack's cuda/, and lets programs look for
# libraries there and in lib/. The pack is tried in an empty root, without environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

programs=(gpu gpu_kernels gpu_bench foreshard-plan)
build=build/pack
processor=${FORESHARD_PACK_PROCESSOR:-x86-64-v3} # what runs on every host of a GPU; native only for this machine and its like
out=build/gpu-day
most_bytes=$((60 << 20))
carried_not='lib(cublas|cublasLt|nccl|cuda)\.so'
c_library='/(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil|libmvec|libanl)\.so'

build() {
  cmake --preset default -B "$build" -DFORESHARD_PROCESSOR="$processor" >/dev/null
  cmake --build "$build" --target "${programs[@]}"
  if [[ ! -e $build/bin/libforeshard_cuda.so ]]; then
    echo "pack.sh: the CUDA engine was not built: this machine has no nvcc or no NCCL" >&2
    return 1
  fi
}

# shared_libraries FILE...: the paths of all that they need, however far down.
shared_libraries() { ldd "$@" | awk '$2 == "=>" && $3 ~ "^/" {print $3} $1 ~ "^/lib.*ld-linux" && NF == 2 {print $1}' | sort -u; }

# stage FOLDER: the pack, not yet compressed.
stage() {
  local library program
  mkdir -p "$1/bin" "$1/lib" "$1/libc" "$1/cuda"
  for program in "${programs[@]}" libforeshard_cuda.so; do
    strip --strip-unneeded -o "$1/bin/$program" "$build/bin/$program"
  done
  chmod +x "$1"/bin/*
  shared_libraries "$1"/bin/* | while read -r library; do
    if [[ $library =~ $carried_not ]]; then
      continue
    elif [[ $library =~ $c_library ]]; then
      cp -L "$library" "$1/libc/"
    else
      cp -L "$library" "$1/lib/"
    fi
  done
  git rev-parse HEAD >"$1/commit"
}

pack() {
  local stage size
  stage=$(mktemp -d)
  stage "$stage/pack"
  mkdir -p "$out"
  tar -C "$stage" -c pack | gzip -9 >"$out/pack.tar.gz"
  rm -rf "$stage"
  size=$(stat -c %s "$out/pack.tar.gz")
  echo "pack.sh: $out/pack.tar.gz has $((size >> 20)) MiB"
  if ((size > most_bytes)); then
    echo "pack.sh: that is more than $((most_bytes >> 20)) MiB, the most that can be carried" >&2
    return 1
  fi
}

# in_root ROOT PROGRAM ARGUMENTS...: in a root that has the pack, its C library and /proc alone.
in_root() {
  # shellcheck disable=SC2016  # for the other shell
  unshare --mount bash -c 'mount --rbind /proc "$0/proc" && exec chroot "$0" /usr/bin/env -i \
    LD_LIBRARY_PATH=/pack/lib:/pack/cuda "/pack/bin/$1" "${@:2}"' "$@"
}

# expect TEXT COMMAND...: what it prints holds the text, whatever its exit code.
expect() {
  local printed
  printed=$("${@:2}" 2>&1) || true
  if [[ $printed != *"$1"* ]]; then
    printf 'pack.sh: FAILED: %s\n  expected "%s" in:\n%s\n' "${*:2}" "$1" "$(tail -n 20 <<<"$printed")" >&2
    return 1
  fi
  echo "pack.sh: tried ${*:4}: $1"
}

# make_root ROOT: the pack, its C library where programs look for it, `env`, and the two libraries that a GPU machine has.
make_root() {
  local library
  mkdir -p "$1/lib64" "$1/lib/x86_64-linux-gnu" "$1/usr/bin" "$1/proc" "$1/tmp"
  tar -C "$1" -xzf "$out/pack.tar.gz"
  cp "$1/pack/libc/ld-linux-x86-64.so.2" "$1/lib64/"
  cp "$1"/pack/libc/* "$1/lib/x86_64-linux-gnu/"
  cp /usr/bin/env "$1/usr/bin/"
  shared_libraries "$build/bin/libforeshard_cuda.so" "$build/bin/gpu_bench" | { grep -E "$carried_not" || true; } | while read -r library; do
    cp -lL "$library" "$1/pack/cuda/" 2>/dev/null || cp -L "$library" "$1/pack/cuda/"
  done
}

try() {
  local root
  if [[ $(id -u) -ne 0 ]]; then
    echo "pack.sh: the pack is not tried: that needs root, for another root folder"
    return
  fi
  root=$(mktemp -d "$PWD/$out/root.XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$root'" EXIT
  make_root "$root"
  expect 'no CUDA device is visible' in_root "$root" gpu || return 1
  expect 'SKIPPED' in_root "$root" gpu || return 1
  expect 'no CUDA device is visible' in_root "$root" gpu_kernels || return 1
  expect 'no CUDA device is visible' in_root "$root" gpu_bench /tmp || return 1
  expect 'step_time_s' in_root "$root" foreshard-plan --model.preset=gpt2 --machine.cluster=8x-h200 --runtime.profile=foreshard-cuda --json || return 1
}

case ${1:-} in
  --try) try ;;
  '')
    build
    pack
    try
    ;;
  *)
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    if [[ $1 == --help ]]; then exit; fi
    exit 2
    ;;
esac
