#!/usr/bin/env bash
# The one test command. Installs what is missing, builds preset `ci` (warnings are errors), checks the format, runs the tests.
#
#   tests/run.sh           everything but the slow cases                                    (20 to 25 minutes on 2 cores)
#   tests/run.sh --full    and the slow cases, and the suite under the address and undefined-behaviour sanitizers, and what runs
#                          several threads under the thread sanitizer
#
# Works on a fresh clone, as root or not, without a terminal. The exit code is 0 only if every part passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=$(env -u OMP_NUM_THREADS nproc)  # which takes its number for that of cores
# Open MPI refuses root and more ranks than cores unless told otherwise.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
sanitizers=$PWD/tests/sanitizers
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions=$sanitizers/leaks.txt:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=suppressions=$sanitizers/threads.txt:halt_on_error=1:second_deadlock_stack=1

failed=()

section() { printf '\n=== %s (%d s) ===\n' "$1" "$SECONDS"; }

# part NAME COMMAND...: runs a part; one that fails does not stop the others.
part() {
  section "$1"
  if ! "${@:2}"; then
    failed+=("$1")
    echo "run.sh: FAILED: $1"
  fi
}

# Other versions of clang-format disagree about details, so only the one of Debian 12 judges.
check_format() {
  local tool=clang-format
  if command -v clang-format-14 >/dev/null; then tool=clang-format-14; fi
  if ! "$tool" --version | grep -q 'version 14\.'; then
    echo "skipped: the format is checked by clang-format 14, this is $("$tool" --version)"
    return
  fi
  git ls-files -z '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r "$tool" --dry-run -Werror
}

# build PRESET [BUILD OPTIONS]
build() { cmake --preset "$1" && cmake --build --preset "$1" "${@:2}"; }

# run_tests PRESET [CTEST OPTIONS]
run_tests() { ctest --preset "$1" --no-tests=error -j"$jobs" "${@:2}" </dev/null; }

build_and_test() { build "$1" && run_tests "$@"; }

# The thread sanitizer of GCC 12 cannot place its shadow memory where addresses are randomised by more than 28 bits.
without_randomised_addresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

thread_sanitizer() {
  build tsan --target threaded_tests || return 1
  export OMP_NUM_THREADS=1
  without_randomised_addresses ctest --preset tsan --no-tests=error -j"$jobs" -L threads </dev/null
}

main() {
  local full=false
  case ${1:-} in
    --full) full=true ;;
    '') ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
  esac
  section 'Set up'
  bash jobscripts/install-dependencies.sh
  if $full; then
    part 'Address and undefined-behaviour sanitizers' build_and_test asan -LE 'slow|house'
    part 'Thread sanitizer, ranks as threads' thread_sanitizer
  fi
  part 'Format' check_format
  if $full; then part 'All tests' build_and_test ci; else part 'Tests' build_and_test ci -LE slow; fi
  section 'Done'
  if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'run.sh: FAILED: %s\n' "${failed[@]}"
    exit 1
  fi
  echo 'run.sh: everything passed'
}

main "$@"
