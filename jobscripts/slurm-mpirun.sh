#!/usr/bin/env bash
# Trains in a Slurm job whose ranks Open MPI's mpirun starts: for clusters whose srun cannot start MPI ranks. All else is as in
# slurm-srun.sh: saved before the time limit, requeued, resumed. Submit from the clone's folder:
#
#   sbatch --nodes=2 --ntasks-per-node=8 --cpus-per-task=4 jobscripts/slurm-mpirun.sh --config run.ini --checkpoint.freq=500
#   sbatch --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=12 jobscripts/slurm-mpirun.sh --config run.ini …
#
# The second is the GPU form: one rank per GPU. Arguments are foreshard-train's; all options of sbatch may be given, these are defaults.
#SBATCH --job-name=foreshard
#SBATCH --time=01:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=foreshard-%j.log
set -euo pipefail
export JOB_HOME=${JOB_HOME:-${SLURM_SUBMIT_DIR:-$PWD}}
# shellcheck source-path=SCRIPTDIR source=slurm/job.bash
if ! source "$JOB_HOME/jobscripts/slurm/job.bash"; then
  echo "Submit from the folder of the clone, or set JOB_HOME to it (it is $JOB_HOME now)." >&2
  exit 2
fi

prepare "$@"
command -v mpirun >/dev/null || refuse "there is no command mpirun: load the module of the Open MPI that this was built with"
read -ra more <<<"${JOB_LAUNCH_OPTIONS:-}"
train mpirun -n "$ranks" --map-by "slot:PE=$cores" --bind-to core -x OMP_NUM_THREADS "${more[@]}"
