#!/usr/bin/env bash
# From a fresh clone to a trained model beside its prediction: sets up, builds, makes a data set from a public-domain book,
# measures this machine, predicts a run, trains it on two MPI ranks, and compares the two. About 19 minutes on two cores.
#
#   jobscripts/quickstart.sh [OUTPUT FOLDER, default runs/quickstart]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:-runs/quickstart}
bin=build/default/bin
config=jobscripts/quickstart.ini
ranks=2
# Open MPI refuses root and more ranks than cores unless told otherwise; one thread a rank.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1

section() { printf '\n=== %s (%d s) ===\n' "$1" "$SECONDS"; }
show() { echo "\$ $*"; "$@"; }

# Ambrose Bierce, The Devil's Dictionary (1911), public domain, as Debian packages it: 383,656 bytes.
fetch_devil() {
  local scratch=$1
  (cd "$scratch" && apt-get download -q dict-devil) >/dev/null 2>&1 || return 1
  dpkg-deb -x "$scratch"/dict-devil_*.deb "$scratch/package"
  gunzip -c <"$scratch/package/usr/share/dictd/devil.dict.dz" >"$out/text.txt"
}

refresh_package_lists() { [[ $(id -u) -eq 0 ]] && apt-get update -q >/dev/null 2>&1; }

get_text() {
  local scratch
  scratch=$(mktemp -d)
  source="The Devil's Dictionary (Bierce, 1911), Debian package dict-devil" licence='public domain'
  if fetch_devil "$scratch" || { refresh_package_lists && fetch_devil "$scratch"; }; then
    echo "$source, $(stat -c %s "$out/text.txt") bytes, $licence"
  else
    source='/usr/share/common-licenses' licence='verbatim copying only'
    echo "No network? Using the licence texts of this system instead of Debian's package dict-devil."
    find /usr/share/common-licenses -type f -print0 | sort -z | xargs -0 cat >"$out/text.txt"
  fi
  rm -rf "$scratch"
}

# Mean loss of the last 20 steps in a metrics.jsonl.
final_loss() {
  grep '"step_s"' "$1" | tail -n 20 | sed -E 's/.*"loss": *([-+.0-9e]+).*/\1/' | awk '{sum += $1} END {printf "%.3f", sum / NR}'
}

# rail NAME: unigram or bigram entropy of the text, nats per byte, as foreshard-data printed it.
rail() { sed -nE "s/.*$1[^0-9]*([0-9]+\.[0-9]+).*/\1/p" "$out/data.log" | head -n 1; }

section 'Set up'
bash jobscripts/install-dependencies.sh
section 'Build'
cmake --preset default >/dev/null
cmake --build --preset default --target foreshard-{data,calibrate,plan,train,compare,trace}

section 'Data'
mkdir -p "$out"
get_text
show $bin/foreshard-data make --text "$out/text.txt" --out "$out/text" --val-fraction 0.1 --source "$source" --licence "$licence" --force \
  | tee "$out/data.log"

section 'Measure this machine'
show mpirun -n $ranks $bin/foreshard-calibrate --quick --out "$out/machine.json"

section 'Predict'
rm -f "$out/predicted.h5"
show $bin/foreshard-plan --config $config --parallel.world_size=$ranks --machine.file="$out/machine.json" --trace "$out/predicted.h5"

section 'Train'
show mpirun -n $ranks $bin/foreshard-train --config $config --data.path="$out/text_train.bin" --data.val_path="$out/text_val.bin" \
  --trace.enable=true --run.dir="$out" --run.name=train
run=$(readlink -f "$out/train/latest")

section 'Compare'
agreement='within tolerance'
show $bin/foreshard-compare "$run/trace.h5" "$out/predicted.h5" || agreement='outside tolerance (a busy machine? see the table above)'
show $bin/foreshard-trace export "$run/trace.h5" --perfetto "$out/measured.json" --force
show $bin/foreshard-trace export "$out/predicted.h5" --perfetto "$out/predicted.json" --force

section 'Done'
loss=$(final_loss "$run/metrics.jsonl")
cat <<TEXT
Training loss, nats per byte:  start ln 256 = 5.545   unigram entropy $(rail unigram)   bigram entropy $(rail bigram)   reached $loss
Prediction against measurement: $agreement
Run folder:   $run
Next:         open $out/measured.json and $out/predicted.json in https://ui.perfetto.dev (one track per rank and lane)
              PYTHONPATH=analysis python3 -m foreshard_analysis report $run/trace.h5 --beside $out/predicted.h5
              $bin/foreshard-plan --help;  $bin/foreshard-train --help
TEXT
if awk "BEGIN {exit !($loss >= $(rail bigram))}"; then
  echo "The loss did not go below the bigram entropy of the text." >&2
  exit 1
fi
