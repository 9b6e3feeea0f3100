#!/usr/bin/env bash
# Trains in a job of PBS Professional or OpenPBS. UNTESTED under PBS: it ran with stand-ins for PBS's commands.
#
#   qsub -l select=2:ncpus=96:mpiprocs=8:ngpus=8 -l walltime=02:00:00 -N mymodel -v ARGUMENTS="--config run.ini --checkpoint.freq=500" \
#     jobscripts/pbs-mpirun.sh
#
# PBS gives no signal ahead of the limit, so a clock here does, two minutes before. Jobs of one name go on from each other's checkpoints:
# submit the next with -W depend=afterany:JOBID. Exit code 75: saved, submit again. GPUs: one rank (mpiprocs) per GPU (ngpus).
# Words of ARGUMENTS are parted by blanks, which none can contain.
#PBS -j oe
#PBS -r y
set -euo pipefail
: "${PBS_JOBID:?this is a batch script: qsub [OPTIONS] jobscripts/pbs-mpirun.sh}"
cd "$PBS_O_WORKDIR"
bin=${JOB_BIN:-$PWD/build/default/bin}
[[ -x $bin/foreshard-train ]] || { echo "There is no program $bin/foreshard-train: build it, or set JOB_BIN to its folder." >&2 && exit 2; }

facts=$(qstat -f "$PBS_JOBID")
fact() { sed -nE "s/^ *Resource_List\.$1 = (.*)/\1/p" <<<"$facts"; }
walltime=$(fact walltime)
[[ $walltime =~ ^(([0-9]{1,4}):)?(([0-9]{1,2}):)?([0-9]{1,7})$ ]] ||
  { echo "walltime is '$walltime', expected hours:minutes:seconds: qsub -l walltime=02:00:00" >&2 && exit 2; }
# One colon parts minutes from seconds.
hours=${BASH_REMATCH[2]:-0} minutes=${BASH_REMATCH[4]:-0} seconds=${BASH_REMATCH[5]}
if [[ -z ${BASH_REMATCH[4]} ]]; then minutes=$hours hours=0; fi
limit=$((10#$hours * 3600 + 10#$minutes * 60 + 10#$seconds))
((limit > 240)) || { echo "walltime=$(fact walltime) leaves no time to save; expected more than four minutes." >&2 && exit 2; }

read -ra arguments <<<"${ARGUMENTS:-}"
gpus=$(fact ngpus)
[[ ${gpus:-0} =~ ^[0-9]+$ ]] || { echo "ngpus is '$gpus', expected a number" >&2 && exit 2; }
if ((10#${gpus:-0} > 0)); then arguments+=(--engine.device=cuda); fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${NCPUS:-1}}
exec timeout --preserve-status --signal=USR1 $((limit - 120)) mpirun --hostfile "$PBS_NODEFILE" -x OMP_NUM_THREADS \
  "$bin/foreshard-train" --run.name="$PBS_JOBNAME" --checkpoint.resume=auto "${arguments[@]}"
