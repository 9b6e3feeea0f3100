#!/usr/bin/env bash
# Runs the tests of the Python package; arguments go to pytest. Exit code 77 if no Python here has what it needs.
#
#   tests/analysis/run.sh                                              without traces of the real commands
#   FORESHARD_BIN=build/default/bin tests/analysis/run.sh -k memory    with them, only some
set -euo pipefail
package=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../analysis" && pwd)
unset LD_PRELOAD # a sanitizer's
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
if [[ -n ${FORESHARD_BIN:-} ]]; then FORESHARD_BIN=$(realpath "$FORESHARD_BIN"); fi

for python in "${FORESHARD_PYTHON:-/usr/bin/python3}" python3; do
  if "$python" -c 'import h5py, jinja2, matplotlib, pandas, pytest' 2>/dev/null; then
    cd "$package"
    PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest -q -p no:cacheprovider "$@"
  fi
done
echo "SKIPPED: no Python with h5py, jinja2, matplotlib, pandas and pytest (jobscripts/install-dependencies.sh)"
exit 77
