#!/usr/bin/env bash
# GPU day: on a machine with a GPU, tests the CUDA engine and its kernels, looks for wrong accesses, measures, and prints one table.
# One command, under nine minutes, without a network:
#
#   tests/gpu/pack.sh                 before, on the build machine; then bring this tree and build/gpu-day to the GPU
#   tests/gpu/run.sh                  with programs from the pack
#   tests/gpu/run.sh --built FOLDER   with programs built on this machine, e.g. build/default
#
# It carries programs and does not build them, since that is what most surely works: the machine needs no compiler, MPI, HDF5 or
# Boost, and all the time goes to the GPU. Should the programs not start with the machine's C library (an older one), they are
# started with the pack's own. cuBLASLt and NCCL are taken from the CUDA toolkit or from PyTorch's packages.
#
# Results are in $OUT, else in build/gpu-results: table.txt, run.log, bench.json, peer.json, and a trace of one step of each model.
# FORESHARD_GPU_SECONDS (520) is the most that all parts take together. Each has a time box of its own, and one that fails does
# not stop the others. The exit code is 0 if all passed, 77 if there is no GPU, 1 else. Missed goals are in the table only.
set -uo pipefail
built=
case ${1:-} in
  '') ;;
  --built) built=$(realpath -m "${2:-$(dirname "${BASH_SOURCE[0]}")/../../build/default}") ;;
  *) sed -n '2,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && [[ $1 == --help ]] && exit
     exit 2 ;;
esac
seconds=${FORESHARD_GPU_SECONDS:-520}
[[ $seconds =~ ^[1-9][0-9]{0,4}$ ]] || { echo "run.sh: FORESHARD_GPU_SECONDS is '$seconds', expected a number of seconds" >&2 && exit 2; }
results=${OUT:+$(realpath -m "$OUT")}
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
results=${results:-$PWD/build/gpu-results}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
launcher=()
# A kernel cannot throw, and scratch is what the CPU's products need.
cpu_only="Cpu.EmbeddingRefusesTokensOutsideTheVocabulary:MatmulRoutes.ScratchIsBounded:AttentionRoutes.*"

say() { printf 'run.sh: %s\n' "$*" | tee -a "$results/run.log"; }
left() { echo $((seconds - SECONDS)); }

# box SECONDS NAME COMMAND...: runs a part within its time and what is left of all; its output goes to the log.
box() {
  local limit=$1 name=$2 began=$SECONDS code first
  ((limit > $(left))) && limit=$(left)
  if ((limit < 5)); then
    say "$name: left out, no time is left"
    failed+=("$name")
    return 1
  fi
  printf '\n=== %s ===\n' "$name" >>"$results/run.log"
  first=$(wc -l <"$results/run.log")
  timeout -k 5 "$limit" "${@:3}" >>"$results/run.log" 2>&1
  code=$?
  if ((code != 0 && code != 77)); then
    failed+=("$name")
    tail -n "+$first" "$results/run.log" | tail -n 15
  fi
  case $code in
    0) say "$name: passed, $((SECONDS - began)) s" ;;
    77) say "$name: skipped" ;;
    124 | 137) say "$name: FAILED: not done within $limit s" ;;
    *) say "$name: FAILED: exit code $code, $((SECONDS - began)) s" ;;
  esac
  return $code
}

# Folders in which libraries of CUDA may be, one a line.
library_folders() {
  local nvcc
  if nvcc=$(command -v nvcc); then dirname "$(dirname "$(readlink -f "$nvcc")")" | sed 'p;s|$|/lib64|;p;s|/lib64$|/targets/x86_64-linux/lib|'; fi
  ls -d "${CUDA_HOME:-/usr/local/cuda}"/lib64 /usr/local/cuda*/lib64 /usr/local/cuda*/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu 2>/dev/null
  python3 - 2>/dev/null <<'PYTHON'
import glob, importlib.util
for name in ("nvidia", "torch"):
    spec = importlib.util.find_spec(name)
    for folder in (spec.submodule_search_locations if spec else ()):
        print(*glob.glob(folder + "/*/lib"), *glob.glob(folder + "/lib"), sep="\n")
PYTHON
}

# folder_of NAME: the first of those folders that has it, if one does.
folder_of() { while read -r f; do [[ -e $f/$1 ]] && echo "$f" && break; done <"$work/folders"; }

# Links to cuBLASLt and NCCL where the programs look for them.
link_cuda() {
  local name folder missing=0
  library_folders >"$work/folders"
  for name in libcublasLt.so.13 libnccl.so.2; do
    folder=$(folder_of "$name")
    if [[ -n $folder ]]; then
      ln -sf "$folder/$name" "$pack/cuda/$name"
      say "$name from $folder"
    else
      say "$name was not found: install PyTorch for CUDA 13, or set CUDA_HOME"
      missing=1
    fi
  done
  return $missing
}

# Where cuDNN is and the compiler that it calls, as ":FOLDER…": both are opened at first use, and need not be there.
cudnn_folders() {
  local name folder
  for name in libcudnn.so.9 libnvrtc.so.13; do
    folder=$(folder_of "$name")
    printf '%s' "${folder:+:$folder}"
  done
}

unpack() {
  if [[ ! -e build/gpu-day/pack.tar.gz ]]; then
    say 'there is no build/gpu-day/pack.tar.gz: run tests/gpu/pack.sh on the build machine, or give --built FOLDER'
    return 1
  fi
  tar -C "$work" -xzf build/gpu-day/pack.tar.gz || return 1
  pack=$work/pack
  programs=$pack/bin
  say "pack of commit $(cat "$pack/commit")"
}

# Programs start with this machine's C library, or with the pack's own.
choose_launcher() {
  local folders=$pack/lib:$pack/cuda cudnn
  cudnn=$(cudnn_folders)
  if [[ -n $cudnn ]]; then say "cuDNN from ${cudnn#:}"; else say 'no cuDNN was found: its attention is not tried'; fi
  launcher=(env "LD_LIBRARY_PATH=$folders$cudnn")
  start gpu --gtest_list_tests >"$work/started" 2>&1 && return
  say "programs do not start with this machine's C library: $(tail -n 1 "$work/started")"
  launcher=("$pack/libc/ld-linux-x86-64.so.2" --library-path "$folders:$pack/libc$cudnn")
  start gpu --gtest_list_tests >"$work/started" 2>&1 && say 'they start with that of the pack' && return
  say "nor with that of the pack: $(tail -n 1 "$work/started"); build on this machine and give --built FOLDER"
  return 1
}

start() { "${launcher[@]+"${launcher[@]}"}" "$programs/$1" "${@:2}"; }

# Test programs return 0 where all was skipped: that is no success here.
test_program() {
  start "$@" | tee "$work/tests"
  local code=${PIPESTATUS[0]}
  grep -q 'no CUDA device is visible' "$work/tests" && return 77
  return "$code"
}

find_sanitizer() {
  local tool
  for tool in "$(command -v compute-sanitizer)" /usr/local/cuda*/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer \
    /opt/nvidia/*/compute-sanitizer /opt/nvidia/*/*/compute-sanitizer; do
    [[ -x $tool && -f $tool ]] && echo "$tool" && return
  done
  return 1
}

# One small training run under each tool, all at once: the time goes to the host.
sanitize() {
  local tool jobs=() code=0
  for tool in memcheck racecheck initcheck synccheck; do
    "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 9 "${launcher[@]+"${launcher[@]}"}" "$programs/gpu" \
      --gtest_filter=Parity.TwoRunsHaveTheSameBits >"$work/$tool.log" 2>&1 &
    jobs+=("$tool:$!")
  done
  for tool in "${jobs[@]}"; do
    if wait "${tool#*:}"; then echo "${tool%:*}: nothing found"; else code=1 && echo "${tool%:*}: FAILED, or not supported here"; fi
    tail -n 25 "$work/${tool%:*}.log"
  done
  return $code
}

# The cluster of the catalogue that has this GPU, if one has.
cluster_of_gpu() {
  case $(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) in
    *H200*) echo 8x-h200 ;;
    *H100*) echo 8x-h100 ;;
    *B200*) echo 8x-b200 ;;
    *A100*80*) echo 8x-a100-80gb ;;
    *A100*) echo 8x-a100-40gb ;;
  esac
}

predict() {
  local model rows cluster
  cluster=$(cluster_of_gpu)
  if [[ -z $cluster ]]; then
    echo 'no cluster of the catalogue has this GPU: nothing is predicted' && return
  fi
  for model in gpt2:32 gpt2-xl:16; do # the rows of gpu_bench
    rows=${model#*:} model=${model%:*}
    start foreshard-plan "--model.preset=$model" --model.vocab_size=50304 --train.seq_len=1024 "--train.local_batch_size=$rows" \
      --precision.param=bf16 "--machine.cluster=$cluster" --runtime.profile=foreshard-cuda --json >"$work/predicted_$model.json" || return 1
  done
}

print_table() {
  cp "$results"/bench.json "$results"/peer.json "$work" 2>/dev/null
  python3 tests/gpu/table.py "$work" | tee "$results/table.txt"
}

use_built() {
  programs=$1/bin pack=$work
  if [[ ! -x $programs/gpu ]]; then
    say "there is no $programs/gpu: cmake --preset default, and build gpu, gpu_kernels, gpu_bench and foreshard-plan"
    return 1
  fi
}

prepare() {
  if [[ -n $built ]]; then use_built "$built"; else unpack && link_cuda && choose_launcher; fi
}

# Parts run in a process of their own, so that they can be stopped: it gets what this script has found out, and its functions.
save_state() {
  declare -p work programs launcher sanitizer >"$work/state"
  declare -f start test_program sanitize cluster_of_gpu predict >>"$work/state"
}

# part SECONDS NAME FUNCTION ARGUMENTS...
part() {
  # shellcheck disable=SC2016  # for the other shell
  box "$1" "$2" bash -c 'source "$0"; "$@"' "$work/state" "${@:3}"
}

main() {
  local code sanitizer=
  mkdir -p "$results" && : >"$results/run.log" || exit 1
  nvidia-smi >>"$results/run.log" 2>&1 || say 'nvidia-smi does not answer'
  prepare || exit 1
  export FORESHARD_MODULE_PATH=$programs
  sanitizer=$(find_sanitizer)
  save_state
  part 110 'Tests of the engine' test_program gpu
  code=$?
  if ((code == 77)); then
    say 'no CUDA device is visible: nothing else is run'
    exit 77
  fi
  rm -f "$results"/{table.txt,bench.json,peer.json,trace_*.h5} # of the day before
  part 20 'Prediction' predict
  part 60 'Tests of the kernels' test_program gpu_kernels "--gtest_filter=-$cpu_only"
  if [[ -n $sanitizer ]]; then
    part 60 'compute-sanitizer' sanitize
  else
    say 'compute-sanitizer: skipped, there is none'
  fi
  part 120 'Benchmark' start gpu_bench "$results"
  box 300 'PyTorch' python3 tests/gpu/peer.py "$results/peer.json"
  print_table
  if ((${#failed[@]} > 0)); then
    printf 'run.sh: FAILED: %s\n' "${failed[@]}" | tee -a "$results/run.log"
    exit 1
  fi
  say "everything passed, $SECONDS s"
}

main
