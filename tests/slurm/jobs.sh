#!/usr/bin/env bash
# Runs the batch scripts on the cluster that cluster.sh starts: tests/slurm/cluster.sh tests/slurm/jobs.sh FOLDER_OF_PROGRAMS [CASE...]
#
# Each function case_NAME is a test. Nothing depends on how fast this machine is: where a signal must come in the middle of a run, its ranks
# are halted until it is there.
set -euo pipefail

programs=$(realpath "$1") && shift
JOB_HOME=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
scripts=$JOB_HOME/jobscripts
export JOB_HOME JOB_BIN=$programs FORESHARD_RUN__DIR=runs
unset OMP_NUM_THREADS "${!SBATCH_@}" "${!JOB_M@}" # what the test itself decides
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

# --- what tests are made of ---

log_of() { echo "foreshard-$1.log"; }

fail() {
  echo "FAILED: $*" >&2
  tail -n 60 foreshard-*.log "$SLURM_LOG"/slurm* >&2
  exit 1
}

# wait_until WHAT COMMAND...: five minutes at most.
wait_until() {
  local end=$((SECONDS + 300))
  until "${@:2}" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "waited five minutes until $1"
    sleep 0.1
  done
}

state_of() { scontrol show job "$1" | sed -nE 's/.*JobState=([A-Z_]+).*/\1/p'; }
exit_code_of() { scontrol show job "$1" | sed -nE 's/.* ExitCode=([0-9]+):.*/\1/p'; }
restarts_of() { scontrol show job "$1" | sed -nE 's/.*Restarts=([0-9]+).*/\1/p'; }
has_ended() { [[ $(state_of "$1") =~ ^(COMPLETED|FAILED|TIMEOUT|CANCELLED)$ ]]; }

expect_end() { # JOB STATE EXIT_CODE RESTARTS
  wait_until "job $1 ended" has_ended "$1"
  local seen
  seen="$(state_of "$1") $(exit_code_of "$1") $(restarts_of "$1")"
  [[ $seen == "$2 $3 $4" ]] || fail "job $1 ended with state, exit code and restarts $seen, expected $2 $3 $4"
}

expect_said() { # JOB TEXT
  grep -qF -- "$2" "$(log_of "$1")" || fail "job $1 did not say: $2"
}

steps=200
# submit FORM [OPTIONS OF sbatch]: two ranks on a core each; prints the job's number.
submit() {
  sbatch --parsable --ntasks-per-node=2 "${@:2}" "$scripts/slurm-$1.sh" --model.preset=byte-tiny --train.seq_len=128 --train.steps=$steps \
    --train.local_batch_size=8 --model.dropout=0.1 --data.path="$PWD/text_train.bin" --metrics.log_freq=1000 --trace.enable=false \
    --checkpoint.freq=10
}

has_saved() { compgen -G "runs/job-$1/*/checkpoints/step-00000010/manifest.json"; }

# Halts the ranks of a job in the middle of their run.
halt() {
  wait_until "job $1 saved its first checkpoint" has_saved "$1"
  scancel --signal=STOP "$1.0"
  compgen -G "runs/job-$1/*/checkpoints/step-00000$steps" && fail "job $1 was done before it could be halted"
  return 0
}

# Step, loss and gradient norm as written, by step, of all runs of that name.
losses_of() {
  sed -nE 's/.*"step":([0-9]+),.*"loss":([^,]+),.*"grad_norm":([^,]+),.*/\1 \2 \3/p' "runs/$1"/2*/metrics.jsonl | sort -n | uniq
}

expect_losses_of_whole_run() { # JOB
  [[ $(losses_of whole | wc -l) -eq $steps ]] || fail "the run that nobody interrupted has $(losses_of whole | wc -l) of $steps steps"
  diff <(losses_of whole) <(losses_of "job-$1") | head -n 5 >differences
  [[ ! -s differences ]] || fail "job $1 has other losses than the run that nobody interrupted: $(cat differences)"
}

# --- tests ---

case_srun_job_is_signalled_before_its_limit_requeued_and_goes_on() {
  local job
  job=$(submit srun --time=60 --signal=B:USR1@90)
  halt "$job"
  scontrol update JobId="$job" TimeLimit=$(($(minutes_of "$job") + 2))
  wait_until "Slurm signalled job $job" is_signalled "$job"
  scontrol update JobId="$job" TimeLimit=60
  scancel --signal=CONT "$job.0"
  expect_end "$job" COMPLETED 0 1
  expect_said "$job" "resumed      after step"
  expect_losses_of_whole_run "$job"
}
is_signalled() { grep -q "signalled before the limit" "$(log_of "$1")"; }

# That it has run.
minutes_of() {
  local hours minutes
  IFS=: read -r hours minutes _ < <(scontrol show job "$1" | sed -nE 's/.*RunTime=([0-9:]+).*/\1/p')
  echo $((10#$hours * 60 + 10#$minutes))
}

case_job_on_two_nodes_is_signalled_requeued_and_goes_on() {
  local form job
  for form in srun mpirun; do
    job=$(submit $form --partition=both --nodes=2 --ntasks-per-node=1)
    wait_until "job $job saved its first checkpoint" has_saved "$job"
    scancel --batch --signal=USR1 "$job"
    expect_end "$job" COMPLETED 0 1
    expect_said "$job" "2 nodes, 2 ranks"
    expect_said "$job" "resumed      after step"
    expect_losses_of_whole_run "$job"
  done
}

case_job_that_started_often_enough_is_not_requeued() {
  local job
  job=$(JOB_MAX_RESTARTS=0 submit srun)
  wait_until "job $job saved its first checkpoint" has_saved "$job"
  scancel --batch --signal=USR1 "$job"
  expect_end "$job" FAILED 75 0
  expect_said "$job" "not requeued: started 1 times, JOB_MAX_RESTARTS is 0"
}

case_killed_rank_ends_the_job() {
  local form job
  for form in srun mpirun; do
    job=$(submit $form)
    wait_until "job $job saved its first checkpoint" has_saved "$job"
    kill -KILL "$(pgrep -n -f "^$programs/foreshard-train")"
    expect_end "$job" FAILED 137 0
    pgrep -f "^$programs/foreshard-train" && fail "ranks of job $job are still there"
    expect_said "$job" "failed with exit code 137; not requeued"
  done
}

case_exit_code_of_the_program_is_that_of_the_job() {
  local form job
  for form in srun mpirun; do
    job=$(sbatch --parsable --ntasks-per-node=2 "$scripts/slurm-$form.sh" --no.such.key=1)
    expect_end "$job" FAILED 2 0
    expect_said "$job" "no.such.key"
  done
}

# As srun does where its daemons cannot start ranks.
case_launcher_that_starts_nothing_and_says_0_is_a_failure() {
  mkdir -p launcher
  printf '#!/bin/sh\n' >launcher/mpirun && chmod +x launcher/mpirun
  local job
  job=$(PATH=$PWD/launcher:$PATH submit mpirun)
  expect_end "$job" FAILED 1 0
  expect_said "$job" "the ranks were not started"
}

# Stands for the program where there is no GPU: says what a rank is given.
make_witness() {
  mkdir -p witness
  cat >witness/foreshard-train <<'WITNESS'
#!/usr/bin/env bash
cores=$(taskset -cp $$ | sed 's/.*: //')
echo "rank ${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID} sees GPUs $CUDA_VISIBLE_DEVICES and core $cores, threads $OMP_NUM_THREADS, arguments $*"
WITNESS
  chmod +x witness/foreshard-train
}

case_gpu_form_gives_each_rank_a_core_and_all_gpus() {
  make_witness
  local form job rank
  declare -A gpus=([srun]=--gpus-per-node=2 [mpirun]=--gres=gpu:2)
  for form in srun mpirun; do
    job=$(JOB_BIN=$PWD/witness submit $form "${gpus[$form]}")
    expect_end "$job" COMPLETED 0 0
    for rank in 0 1; do
      grep -qE "rank $rank sees GPUs 0,1 and core [01], threads 1, .*--engine.device=cuda" "$(log_of "$job")" || fail "rank $rank of job $job"
    done
    [[ $(grep -oE 'core [01]' "$(log_of "$job")" | sort -u | wc -l) -eq 2 ]] || fail "both ranks of job $job are on the same core"
  done
}

case_gpu_form_refuses_another_number_of_ranks() {
  local job
  job=$(submit srun --gpus-per-node=1)
  expect_end "$job" FAILED 2 0
  expect_said "$job" "2 ranks on a node that lends 1 GPUs, expected one rank per GPU: --ntasks-per-node=1"
}

case_missing_way_to_start_ranks_is_refused() {
  local job
  job=$(JOB_MPI=pmi7 submit srun)
  expect_end "$job" FAILED 2 0
  expect_said "$job" "cannot start MPI ranks by 'pmi7', but by:"
}

main() {
  local case all
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cd "$folder"
  seq 20000 | tr -d '\n' >text.txt
  "$programs/foreshard-data" make --text text.txt --out text >/dev/null
  FORESHARD_RUN__NAME=whole submit srun >/dev/null
  [[ $# -gt 0 ]] || mapfile -t all < <(compgen -A function case_)
  for case in "${@:-${all[@]}}"; do
    SECONDS=0
    "$case"
    echo "ok $case ($SECONDS s)"
  done
}

main "$@"
