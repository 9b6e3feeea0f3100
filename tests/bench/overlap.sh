#!/usr/bin/env bash
# Communication that compute does not hide, measured over a shaped link and as the simulator says: overlap.py on two nodes.
#
#   tests/bench/overlap.sh [BIN] [--mbit N] [OPTIONS OF overlap.py]      BIN is build/default/bin, N is 4000 by default
#
# One rank on each node, each with a core of its own. As root it gets most of these cores, whatever else the machine does.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$here/../../build/default/bin
mbit=4000
if [[ ${1:-} == --help ]]; then exec python3 "$here/overlap.py" --help; fi
if [[ $# -gt 0 && $1 != --* ]]; then bin=$1 && shift; fi
if [[ ${1:-} == --mbit ]]; then mbit=$2 && shift 2; fi

# Sessions share the cores by the weight of their autogroup.
run_favoured() { setsid -w bash -c '{ echo -15 >/proc/self/autogroup; } 2>/dev/null || true; exec "$@"' _ "$@"; }

run_favoured "$here/../net/two_nodes.sh" --slots 1 --split-cores --mbit "$mbit" python3 "$here/overlap.py" "$(realpath "$bin")" "$@"
