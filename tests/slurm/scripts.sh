#!/usr/bin/env bash
# What can be tested of the batch scripts and the clusters' files without Slurm: tests/slurm/scripts.sh
# shellcheck disable=SC2317 # functions are called by name
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scripts=$home/jobscripts
failures=0

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# expect CODE TEXT COMMAND...: the command ends so and says so.
expect() {
  local code=0 output
  output=$("${@:3}" 2>&1) || code=$?
  [[ $code -eq $1 && $output == *"$2"* ]] || fail "${*:3}: exit code $code, expected $1 and '$2', said: $output"
}

submit() { "$scripts/slurm-submit.sh" --dry-run "$@"; }

# As Slurm calls a batch script: in_job "VARIABLE=VALUE ..." FORM ARGUMENTS...
in_job() {
  local variables
  read -ra variables <<<"$1"
  env SLURM_JOB_ID=7 SLURM_TASKS_PER_NODE=4 "JOB_HOME=$home" "${variables[@]}" "$scripts/slurm-$2.sh" "${@:3}"
}

facts_of() { sed -nE "s/^$2 *= *(.*)/\1/p" "$scripts/clusters/$1.conf"; } # CLUSTER KEY
gpus_in_catalogue() { grep -A1 '"gpus_per_node"' "$home/sim/machines/clusters/$1.json" | grep -oE '[0-9]+'; }

batch_scripts_refuse_what_cannot_run() {
  local form
  for form in srun mpirun; do
    expect 2 "this is a batch script" env -u SLURM_JOB_ID JOB_HOME="$home" "$scripts/slurm-$form.sh"
    expect 2 "set JOB_HOME to it (it is /nowhere now)" env JOB_HOME=/nowhere "$scripts/slurm-$form.sh"
    expect 2 "there is no program /nowhere/foreshard-train" in_job JOB_BIN=/nowhere $form
    expect 2 "JOB_MAX_RESTARTS is 'often', expected a whole number" in_job JOB_MAX_RESTARTS=often $form
    expect 2 "4 ranks on a node that lends 8 GPUs" in_job SLURM_GPUS_ON_NODE=8 $form
    expect 2 "8(x2),4 ranks on a node that lends 8 GPUs" in_job "SLURM_GPUS_ON_NODE=8 SLURM_TASKS_PER_NODE=8(x2),4" $form
    expect 2 "SLURM_TASKS_PER_NODE is many" in_job SLURM_TASKS_PER_NODE=many $form
    expect 2 "JOB_MAX_RESTARTS is '008'" in_job JOB_MAX_RESTARTS=008 $form
    expect 2 "JOB_SETUP is /nowhere, which cannot be read" in_job JOB_SETUP=/nowhere $form
  done
}

submission_refuses_bad_input() {
  local scratch
  scratch=$(mktemp -d)
  printf '# a comment\nspeed = 3\n' >"$scratch/odd.conf"
  printf 'gpus_per_node = eight\n' >"$scratch/words.conf"
  printf 'gpus_per_node = 8\ncores_per_node = 08\n' >"$scratch/octal.conf"
  expect 2 "--cluster nowhere is neither a file nor one of: " submit --cluster nowhere
  expect 2 "unknown option --node" submit --node 2
  expect 2 "--nodes wants a value" submit --nodes --cpu
  expect 2 "--nodes is '0', expected a whole number from 1" submit --nodes 0 --cpu
  expect 2 "--nodes is '99999999999999999999'" submit --nodes 99999999999999999999 --cpu
  expect 2 "write --nodes 2" submit --nodes=2
  expect 2 "--ranks is 'x'" submit --ranks x
  expect 2 "how many GPUs has a node?" submit
  expect 2 "expected srun or mpirun" submit --cpu --launcher flux
  expect 2 "this cluster wants --account" submit --cluster perlmutter
  expect 2 "--ranks 5 on a node of 4 GPUs" submit --cluster perlmutter --account a --ranks 5
  expect 2 "--ranks 129 on a node of 128 cores" submit --cluster perlmutter --account a --cpu --ranks 129
  expect 2 "frontier has no GPUs that Foreshard can use" submit --cluster frontier --account a
  expect 2 "gpus_per_node of cluster $scratch/words.conf is 'eight'" submit --cluster "$scratch/words.conf"
  expect 2 "cores_per_node of cluster $scratch/octal.conf is '08'" submit --cluster "$scratch/octal.conf"
  expect 2 "line 2: 'speed = 3', expected KEY = VALUE with a key of:" submit --cluster "$scratch/odd.conf"
  cp "$scripts/slurm-submit.sh" "$scratch"
  expect 2 "there are no clusters in" "$scratch/slurm-submit.sh" --list
  expect 2 "there are no clusters in" "$scratch/slurm-submit.sh" --cluster nowhere
  rm -rf "$scratch"
}

a_link_to_the_submission_finds_its_clusters() {
  local scratch
  scratch=$(mktemp -d)
  ln -s "$scripts/slurm-submit.sh" "$scratch/submit"
  expect 0 perlmutter "$scratch/submit" --list
  rm -rf "$scratch"
}

# One whose last command fails, and which uses what is not set.
a_setup_file_may_fail() {
  local setup
  setup=$(mktemp)
  # shellcheck disable=SC2016  # for the batch script
  echo 'test -d "$NOT_SET/nowhere" && export X=1' >"$setup"
  expect 2 "ended with code 1; going on" in_job "JOB_SETUP=$setup JOB_BIN=/nowhere" srun
  rm -f "$setup"
}

submission_prints_what_it_would_run() {
  expect 0 "sbatch --nodes=2 --ntasks-per-node=4 --cpus-per-task=16 --gpus-per-node=4 --time=2:00:00 --account=m1_g --qos=regular --constraint=gpu $scripts/slurm-srun.sh --config run.ini" \
    submit --cluster perlmutter --account m1_g --nodes 2 --time 2:00:00 -- --config run.ini
  expect 0 "sbatch --nodes=1 --ntasks-per-node=16 --cpus-per-task=8 --account=m1 --qos=debug --constraint=cpu" \
    submit --cluster perlmutter --account m1 --cpu --ranks 16 --qos debug
  expect 0 "--gres=gpu:4 --account=a --partition=boost_usr_prod" submit --cluster leonardo --account a
  expect 0 "slurm-mpirun.sh" submit --cpu --launcher mpirun
}

# Numbers of GPUs are those of the catalogue, which has sources of its own.
clusters_agree_with_the_catalogue() {
  local cluster catalogue gpus
  for cluster in $("$scripts/slurm-submit.sh" --list); do
    [[ $(facts_of "$cluster" source) == https://* ]] || fail "$cluster.conf names no source"
    expect 0 "sbatch" submit --cluster "$cluster" --account a --cpu
    catalogue=$(facts_of "$cluster" catalogue) gpus=$(facts_of "$cluster" gpus_per_node)
    [[ $cluster != generic ]] || continue
    grep -q UNTESTED "$scripts/clusters/$cluster.conf" || fail "$cluster.conf does not say that it is untested"
    [[ $gpus == 0 || $gpus == "$(gpus_in_catalogue "$catalogue")" ]] || fail "$cluster.conf: $gpus GPUs a node, in the catalogue $(gpus_in_catalogue "$catalogue")"
  done
}

scripts_are_free_of_warnings() {
  if ! command -v shellcheck >/dev/null; then
    echo "shellcheck is not installed: not checked for warnings"
    return
  fi
  git -C "$home" ls-files -z '*.sh' '*.bash' | (cd "$home" && xargs -0 shellcheck -x -S warning) || fail "warnings of shellcheck, above"
}

batch_scripts_refuse_what_cannot_run
submission_refuses_bad_input
a_link_to_the_submission_finds_its_clusters
a_setup_file_may_fail
submission_prints_what_it_would_run
clusters_agree_with_the_catalogue
scripts_are_free_of_warnings
exit $((failures > 0))
