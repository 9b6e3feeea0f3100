#!/usr/bin/env bash
# Runs a command beside a Slurm cluster of two nodes, `one` and `two`, which both are this machine: munged, slurmctld and slurmd are started
# for it and end with it. Inside, sbatch, srun and scontrol work as on any cluster; jobs run on node `one`, in partition `both` on both,
# between which lies real TCP.
#
#   tests/slurm/cluster.sh COMMAND...
#
# Nodes say that they have 2 cores, whatever this machine has, and 2 GPUs, which are /dev/null twice: good for how ranks are placed and
# what they are shown. Output of the daemons: $SLURM_LOG, shown where the cluster does not start.
#
# Exit code: that of COMMAND, or 77 where Slurm, munge or the right to use them are missing. Everything lives in a mount, process, host
# name and network namespace of its own, so nothing is left behind, however this ends, and several may run at once.
set -euo pipefail

skip() {
  echo "SKIPPED: $*" >&2
  exit 77
}

fail() {
  echo "cluster.sh: $*" >&2
  tail -n 20 "$SLURM_LOG"/* >&2
  exit 1
}

isolated() { unshare --net --uts --mount --pid --fork --kill-child --mount-proc "$@"; }

# What daemons would write outside of their own files: sockets, keys, shared memory, scratch.
make_private() {
  mount -t tmpfs none /run && mount -t tmpfs none /dev/shm && mount -t tmpfs none /etc/munge
  printf '127.0.0.1 localhost\n10.77.0.1 one\n10.77.0.2 two\n' >/run/hosts && mount --bind /run/hosts /etc/hosts
  export SLURM_LOG=/run/slurm/log SLURM_CONF=/run/slurm/slurm.conf TMPDIR=/run/slurm/tmp
  mkdir -p /run/slurm/{state,spool-one,spool-two,local} /run/{munge,netns} "$SLURM_LOG" "$TMPDIR"
}

make_network() {
  hostname one && ip link set lo up
  ip netns add two && ip -n two link set lo up
  ip link add eth type veth peer name eth netns two
  ip link set eth up && ip addr add 10.77.0.1/24 dev eth
  ip -n two link set eth up && ip -n two addr add 10.77.0.2/24 dev eth
}

start_munge() {
  head -c 1024 /dev/urandom >/etc/munge/munge.key && chmod 400 /etc/munge/munge.key
  munged --force --socket=/run/munge/socket --log-file="$SLURM_LOG/munged" --pid-file=/run/munge/pid --seed-file=/run/munge/seed
}

# Jobs start at once, requeued ones after five seconds. The controller looks at time limits every 30 s.
write_configuration() {
  cat >"$SLURM_CONF" <<CONF
ClusterName=one
SlurmctldHost=one
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/socket,cred_expire=5
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool-%n
TmpFS=/run/slurm/local
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd-%n.pid
SlurmctldLogFile=$SLURM_LOG/slurmctld
SlurmdLogFile=$SLURM_LOG/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=one,two CPUs=2 RealMemory=2000 Gres=gpu:2
PartitionName=main Nodes=one Default=YES MaxTime=INFINITE State=UP
PartitionName=both Nodes=one,two MaxTime=INFINITE State=UP
CONF
  mknod /run/slurm/gpu0 c 1 3 && mknod /run/slurm/gpu1 c 1 3
  echo 'NodeName=one,two Name=gpu File=/run/slurm/gpu[0-1]' >/run/slurm/gres.conf
}

nodes_are_idle() { [[ $(sinfo --noheader --format=%D%T --partition=both 2>/dev/null) == 2idle ]]; }

start_slurm() {
  slurmctld -i || fail "slurmctld did not start"
  slurmd || fail "slurmd did not start"
  nsenter --net=/run/netns/two unshare --uts --mount sh -c 'hostname two && mount -t tmpfs none /run/slurm/local && slurmd' ||
    fail "the second slurmd did not start"
  until nodes_are_idle; do
    ((SECONDS < 120)) || fail "the nodes did not come up within two minutes"
    sleep 0.1
  done
}

inside() {
  trap 'exit 143' TERM # the first process of its namespace ignores what it does not catch
  make_private
  make_network
  start_munge >"$SLURM_LOG/munged.out" 2>&1 || fail "munged did not start"
  write_configuration
  start_slurm
  "$@"
}

main() {
  local command
  [[ $# -gt 0 ]] || { sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2; }
  export PATH=$PATH:/usr/sbin:/sbin
  for command in munged slurmctld slurmd sbatch srun scontrol ip nsenter unshare; do
    command -v $command >/dev/null || skip "there is no command $command (jobscripts/install-dependencies.sh installs it)"
  done
  [[ $(id -u) -eq 0 ]] || skip "Slurm's daemons need root"
  [[ $(stat -f -c %T /sys/fs/cgroup) =~ ^(cgroup2fs|tmpfs)$ ]] || skip "Slurm's daemons need control groups at /sys/fs/cgroup"
  isolated true 2>/dev/null || skip "this machine does not let us make namespaces"
  isolated "${BASH_SOURCE[0]}" inside "$@"
}

if [[ ${1:-} == inside ]]; then inside "${@:2}"; else main "$@"; fi
