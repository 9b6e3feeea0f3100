# What slurm-srun.sh and slurm-mpirun.sh share; they source it. README.md beside this folder lists the settings.
#
#   prepare ARGUMENTS   reads settings and arguments for foreshard-train, refuses bad ones with exit code 2, prints what will run
#   train COMMAND...    has the command start foreshard-train in every rank, and requeues the job where it saved and stopped
#
# After `prepare`: nodes, ranks, cores (of a rank), gpus (of a node; 0: none).

say() { echo "$(date +%FT%T) foreshard job ${SLURM_JOB_ID:-}: $*"; }

refuse() {
  say "$*" >&2
  exit 2
}

# Of Slurm's "2(x3),1", ranks on each node, their sum: 7.
sum_of_ranks() {
  local part sum=0
  for part in ${1//,/ }; do
    [[ $part =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || refuse "SLURM_TASKS_PER_NODE is $1, expected numbers such as 8(x2),4"
    sum=$((sum + BASH_REMATCH[1] * ${BASH_REMATCH[3]:-1}))
  done
  echo "$sum"
}

expect_number() { # NAME VALUE
  [[ $2 =~ ^(0|[1-9][0-9]{0,8})$ ]] || refuse "$1 is '$2', expected a whole number"
}

has_argument() {
  local argument
  for argument in "${arguments[@]}"; do
    if [[ $argument == "$1" || $argument == "$1="* ]]; then return 0; fi
  done
  return 1
}

# KEY VALUE: unless the user gave the key, or its variable in the environment.
add_argument() {
  local variable=${1#--}
  variable=FORESHARD_${variable^^}
  variable=${variable//./__}
  [[ -n ${!variable:-} ]] || has_argument "$1" || arguments+=("$1=$2")
}

read_layout() {
  nodes=${SLURM_JOB_NUM_NODES:-1}
  ranks=$(sum_of_ranks "${SLURM_TASKS_PER_NODE:-1}") || exit
  cores=${SLURM_CPUS_PER_TASK:-1}
  gpus=${SLURM_GPUS_ON_NODE:-0}
  expect_number SLURM_GPUS_ON_NODE "$gpus"
}

read_settings() {
  bin=${JOB_BIN:-$JOB_HOME/build/default/bin}
  max_restarts=${JOB_MAX_RESTARTS:-100}
  restarts=${SLURM_RESTART_COUNT:-0}
  expect_number JOB_MAX_RESTARTS "$max_restarts"
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$cores}
}

# One rank per GPU, each finds its own by its place on the node. All see all GPUs that the job has there: bound to ranks by Slurm
# (--gpus-per-task, --gpu-bind) NCCL may not copy between them, and --gpu-bind=none would also show those of other jobs.
expect_rank_per_gpu() {
  ((gpus > 0)) || return 0
  [[ $SLURM_TASKS_PER_NODE =~ ^$gpus(\(x[0-9]+\))?$ ]] ||
    refuse "$SLURM_TASKS_PER_NODE ranks on a node that lends $gpus GPUs, expected one rank per GPU: --ntasks-per-node=$gpus with --gpus-per-node=$gpus"
}

# A file of shell commands, for modules and variables.
load_setup() {
  [[ -n ${JOB_SETUP:-} ]] || return 0
  [[ -r $JOB_SETUP ]] || refuse "JOB_SETUP is $JOB_SETUP, which cannot be read; expected a file of shell commands, such as module load lines"
  local code=0
  set +eu # files that others wrote use unset variables, and commands that fail
  # shellcheck source=/dev/null
  source "$JOB_SETUP"
  code=$?
  set -eu
  ((code == 0)) || say "the last command of JOB_SETUP ($JOB_SETUP) ended with code $code; going on"
}

expect_program() {
  [[ -x $bin/foreshard-train ]] ||
    refuse "there is no program $bin/foreshard-train: build it (cmake --workflow --preset default), or set JOB_BIN to its folder"
}

complete_arguments() {
  add_argument --run.name "job-$SLURM_JOB_ID"
  add_argument --checkpoint.resume auto
  if ((gpus > 0)); then add_argument --engine.device cuda; fi
}

prepare() {
  [[ -n ${SLURM_JOB_ID:-} ]] || refuse "this is a batch script: sbatch [OPTIONS] $0 [ARGUMENTS of foreshard-train]"
  signalled=false
  trap 'signalled=true' USR1
  arguments=("$@")
  read_layout
  read_settings
  expect_rank_per_gpu
  load_setup
  expect_program
  complete_arguments
  note=$PWD/.foreshard-job-$SLURM_JOB_ID
  rm -f "$note" "$note.ended"
  say "start $((restarts + 1)) on ${SLURM_JOB_NODELIST:-?}: $nodes nodes, $ranks ranks, $cores cores a rank, $gpus GPUs a node"
  say "foreshard-train ${arguments[*]}"
}

# Asks again, since a launcher that has not started its ranks yet passes nothing on.
remind() {
  while kill -USR1 "$launcher" 2>/dev/null; do sleep 10; done
}

ask_to_save() {
  interrupted=true
  [[ -z ${reminder:-} ]] || return 0
  say "signalled before the limit: asking the ranks to save and stop"
  remind &
  reminder=$!
}

# The exit code of a command that runs beside this shell, which answers signals meanwhile. The command begins with the signal ignored,
# or one that came before it listens would end it.
supervise() {
  local code
  (trap '' USR1 && exec "$@") &
  launcher=$!
  trap ask_to_save USR1
  if $signalled; then ask_to_save; fi
  while :; do
    interrupted=false
    wait "$launcher" && code=0 || code=$?
    $interrupted || break
  done
  if [[ -n ${reminder:-} ]]; then kill "$reminder" 2>/dev/null || true; fi
  return "$code"
}

requeue() {
  if ((restarts >= max_restarts)); then
    say "saved and stopped, but not requeued: started $((restarts + 1)) times, JOB_MAX_RESTARTS is $max_restarts"
    exit 75
  fi
  say "saved and stopped; requeued to go on"
  scontrol requeue "$SLURM_JOB_ID" && exit 0
  say "cannot be requeued (submitted with --no-requeue?): submit again with FORESHARD_RUN__NAME=job-$SLURM_JOB_ID to go on" >&2
  exit 75
}

# What became of the ranks: the code that the first one ended with, else the launcher's. That is 0, too, where srun could not start them.
code_of_ranks() { # CODE OF THE LAUNCHER
  local code=$1
  if [[ -s $note ]]; then
    code=$(<"$note")
  elif ((code == 0)) && [[ ! -e $note.ended ]]; then
    say "the ranks were not started, see the launcher's messages above" >&2
    code=1
  fi
  echo "$code"
}

train() {
  local code=0
  supervise "$@" "$JOB_HOME/jobscripts/slurm/rank.sh" "$note" "$bin/foreshard-train" "${arguments[@]}" || code=$?
  code=$(code_of_ranks "$code")
  rm -f "$note" "$note.ended"
  case $code in
    0) say "done" ;;
    75) requeue ;;
    *) say "failed with exit code $code; not requeued" >&2 ;;
  esac
  exit "$code"
}
