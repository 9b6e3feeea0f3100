#!/usr/bin/env bash
# Submits slurm-srun.sh or slurm-mpirun.sh to a cluster that clusters/*.conf describes, and prints the sbatch command that does it.
#
#   jobscripts/slurm-submit.sh --cluster perlmutter --account m1234_g --nodes 2 --time 2:00:00 -- --config run.ini --checkpoint.freq=500
#
#   --cluster NAME|FILE   jobscripts/clusters/NAME.conf, or a file like it; generic by default
#   --nodes N             1 by default
#   --cpu                 ranks on cores instead of GPUs
#   --ranks N             ranks on a node: its GPUs by default, and as many GPUs are asked for; with --cpu one by default
#   --cores N             cores of a rank; by default the node's cores shared evenly
#   --launcher NAME       srun or mpirun, instead of what the cluster's file says
#   --time, --account, --partition, --qos, --constraint VALUE    as sbatch has them, instead of what the file says
#   --dry-run             only prints the command
#   --list                names the clusters
#   --                    what follows are arguments of foreshard-train
#
# More options of sbatch: its environment variables, SBATCH_RESERVATION and so on.
set -euo pipefail
home=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
keys=(source catalogue gpus_per_node cores_per_node partition qos constraint account gpu_option memory launcher mpi launch_options environment setup)
options=(cluster nodes ranks cores launcher time account partition qos constraint)

refuse() {
  echo "slurm-submit: $*" >&2
  exit 2
}

is_one_of() { # WORD WORDS...
  local word
  for word in "${@:2}"; do [[ $1 != "$word" ]] || return 0; done
  return 1
}

clusters() {
  local file
  for file in "$home"/jobscripts/clusters/*.conf; do
    [[ -e $file ]] || refuse "there are no clusters in $home/jobscripts/clusters: run this script where it lies in the clone, or through a link"
    basename "$file" .conf
  done
}

read_options() {
  while [[ $# -gt 0 && $1 != -- ]]; do
    case $1 in
      --cpu) cpu=true ;;
      --dry-run) dry_run=true ;;
      --list) clusters && exit 0 ;;
      --help) sed -n '2,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
      --*=*) refuse "$1: write ${1%%=*} ${1#*=}" ;;
      --*)
        is_one_of "${1#--}" "${options[@]}" || refuse "unknown option $1; --help lists them (arguments of foreshard-train come after --)"
        [[ $# -gt 1 && $2 != --* ]] || refuse "$1 wants a value"
        asked[${1#--}]=$2 && shift
        ;;
      *) refuse "unknown argument $1; arguments of foreshard-train come after --" ;;
    esac
    shift
  done
  arguments=("${@:2}")
}

# Lines KEY = VALUE; a key `cpu.KEY` stands for KEY in the CPU form.
read_cluster() { # FILE
  local line number=0
  while read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    [[ -n $line && $line != \#* ]] || continue
    if [[ $line =~ ^([a-z_.]+)\ *=\ *(.*)$ ]] && is_one_of "${BASH_REMATCH[1]#cpu.}" "${keys[@]}"; then
      cluster[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
    else
      refuse "$1, line $number: '$line', expected KEY = VALUE with a key of: ${keys[*]}"
    fi
  done <"$1"
}

find_cluster() {
  local name=${asked[cluster]:-generic}
  local file=$home/jobscripts/clusters/$name.conf
  [[ -r $file ]] || file=$name
  [[ -f $file && -r $file ]] || refuse "--cluster $name is neither a file nor one of: $(clusters | xargs)"
  read_cluster "$file"
}

# What was asked for, else what the file says of this form, else of both, else a default.
value() { # KEY [DEFAULT]
  local of_form=
  if $cpu; then of_form=${cluster[cpu.$1]-${cluster[$1]-}}; else of_form=${cluster[$1]-}; fi
  echo "${asked[$1]:-${of_form:-${2:-}}}"
}

number() { # NAME VALUE
  [[ $2 =~ ^[1-9][0-9]{0,6}$ ]] || refuse "$1 is '$2', expected a whole number from 1 to 9999999"
  echo "$2"
}

ranks_of_node() {
  local gpus=${cluster[gpus_per_node]:-}
  if $cpu; then
    number --ranks "${asked[ranks]:-1}"
  elif [[ $gpus == 0 ]]; then
    refuse "${asked[cluster]} has no GPUs that Foreshard can use (its file says why): --cpu starts ranks on cores"
  else
    [[ -n ${asked[ranks]:-$gpus} ]] || refuse "how many GPUs has a node? --ranks N; or --cpu"
    [[ -z $gpus ]] || gpus=$(number "gpus_per_node of cluster ${asked[cluster]:-generic}" "$gpus") || exit
    local ranks
    ranks=$(number --ranks "${asked[ranks]:-$gpus}") || exit
    [[ -z $gpus ]] || ((ranks <= gpus)) || refuse "--ranks $ranks on a node of $gpus GPUs, expected at most that many: each rank has one"
    echo "$ranks"
  fi
}

cores_of_rank() { # RANKS OF A NODE
  local cores each
  cores=$(value cores_per_node)
  [[ -z $cores ]] || cores=$(number "cores_per_node of cluster ${asked[cluster]:-generic}" "$cores") || exit
  each=$((${cores:-$1} / $1))
  ((each > 0)) || refuse "--ranks $1 on a node of $cores cores, expected at most that many"
  number --cores "${asked[cores]:-$each}"
}

expect_account() {
  [[ $(value account) != required ]] || refuse "this cluster wants --account NAME, the project that pays"
}

# What job.bash reads, and what the cluster's libraries do.
add_environment() {
  local pairs
  read -ra pairs <<<"$(value environment)"
  command+=("JOB_HOME=$home" "${pairs[@]}")
  add JOB_MPI "$(value mpi)"
  add JOB_LAUNCH_OPTIONS "$(value launch_options)"
  add JOB_SETUP "$(value setup)"
}

add_gpus() { # NUMBER
  case $(value gpu_option gpus-per-node) in
    gres) command+=("--gres=gpu:$1") ;;
    gpus-per-node) command+=("--gpus-per-node=$1") ;;
    *) refuse "gpu_option = $(value gpu_option), expected gpus-per-node or gres" ;;
  esac
}

add() { # NAME VALUE: if there is a value.
  if [[ -n $2 ]]; then command+=("$1=$2"); fi
}

# How to predict the run that is submitted.
show_prediction() { # RANKS
  if ! $cpu && [[ -n ${cluster[catalogue]:-} ]]; then
    echo "# predict it: foreshard-plan --machine.cluster=${cluster[catalogue]} --parallel.world_size=$1 …"
  fi
}

main() {
  declare -A asked=() cluster=()
  local cpu=false dry_run=false nodes ranks cores launcher command=(env) arguments key
  read_options "$@"
  find_cluster
  expect_account
  nodes=$(number --nodes "${asked[nodes]:-1}")
  ranks=$(ranks_of_node)
  cores=$(cores_of_rank "$ranks")
  launcher=$(value launcher srun)
  is_one_of "$launcher" srun mpirun || refuse "--launcher $launcher, expected srun or mpirun"
  add_environment
  command+=(sbatch "--nodes=$nodes" "--ntasks-per-node=$ranks" "--cpus-per-task=$cores")
  $cpu || add_gpus "$ranks"
  for key in time account partition qos constraint; do add --$key "$(value $key)"; done
  add --mem "$(value memory)"
  command+=("$home/jobscripts/slurm-$launcher.sh" "${arguments[@]}")
  show_prediction $((nodes * ranks))
  printf '%q ' "${command[@]}" && echo
  $dry_run || exec "${command[@]}"
}

main "$@"
