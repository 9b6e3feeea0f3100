#!/usr/bin/env bash
# Trains in a Slurm job whose ranks srun starts. Two minutes before the time limit the run saves and stops, the job is requeued, and goes
# on from the checkpoint, until the run is done. Submit from the clone's folder:
#
#   sbatch --nodes=2 --ntasks-per-node=8 --cpus-per-task=4 jobscripts/slurm-srun.sh --config run.ini --checkpoint.freq=500
#   sbatch --nodes=2 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=12 jobscripts/slurm-srun.sh --config run.ini …
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

expect_mpi() {
  srun --mpi=list 2>&1 | grep -qw -- "$mpi" ||
    refuse "this Slurm cannot start MPI ranks by '$mpi', but by: $(srun --mpi=list 2>&1 | xargs). Set JOB_MPI, or use slurm-mpirun.sh"
}

prepare "$@"
mpi=${JOB_MPI:-pmix}
launch=(srun --nodes="$nodes" --ntasks="$ranks" --cpus-per-task="$cores" --cpu-bind=cores --kill-on-bad-exit=1)
if [[ $mpi != default ]]; then
  expect_mpi
  launch+=(--mpi="$mpi")
fi
read -ra more <<<"${JOB_LAUNCH_OPTIONS:-}"
train "${launch[@]}" "${more[@]}"
