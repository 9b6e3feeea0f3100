#!/usr/bin/env bash
# Trains in a job of PBS Professional or OpenPBS. UNTESTED under PBS: it ran with stand-ins for PBS's commands.
#
#   qsub -l select=2:ncpus=96:mpiprocs=8:ngpus=8 -l walltime=02:00:00 -N mymodel -v ARGUMENTS="--config run.ini --checkpoint.freq=500" \
#     jobscripts/pbs-mpirun.sh
#
# PBS gives no signal ahead of the limit, so a clock here does, two minutes before. Jobs of one name go on from each other's checkpoints:
# submit the next with -W depend=afterany:JOBID. Exit code 75: saved, submit again. GPUs: one rank (mpiprocs) per GPU (ngpus).
#PBS -j oe
#PBS -r y
set -euo pipefail
: "${PBS_JOBID:?this is a batch script: qsub [OPTIONS] jobscripts/pbs-mpirun.sh}"
cd "$PBS_O_WORKDIR"
bin=${JOB_BIN:-$PWD/build/default/bin}
[[ -x $bin/foreshard-train ]] || { echo "There is no program $bin/foreshard-train: build it, or set JOB_BIN to its folder." >&2 && exit 2; }

facts=$(qstat -f "$PBS_JOBID")
fact() { sed -nE "s/^ *Resource_List\.$1 = (.*)/\1/p" <<<"$facts"; }
IFS=: read -r hours minutes seconds <<<"$(fact walltime)"
limit=$((10#$hours * 3600 + 10#$minutes * 60 + 10#$seconds))
((limit > 240)) || { echo "walltime=$(fact walltime) leaves no time to save; expected more than four minutes." >&2 && exit 2; }

read -ra arguments <<<"${ARGUMENTS:-}"
gpus=$(fact ngpus)
if ((${gpus:-0} > 0)); then arguments+=(--engine.device=cuda); fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${NCPUS:-1}}
exec timeout --preserve-status --signal=USR1 $((limit - 120)) mpirun --hostfile "$PBS_NODEFILE" -x OMP_NUM_THREADS \
  "$bin/foreshard-train" "${arguments[@]}" --run.name="$PBS_JOBNAME" --checkpoint.resume=auto
