#!/usr/bin/env bash
# Runs a command on the first of two nodes that are network namespaces of this machine, joined by a link with real TCP. Inside,
# a plain `mpirun -n 4 PROGRAM` puts ranks 0 and 1 on nodea, and 2 and 3 on nodeb.
#
#   tests/net/two_nodes.sh [--slots N] [--cyclic] [--split-cores] [--mbit N] [--bytes FILE] COMMAND...
#
#   --slots N      ranks on a node, 2 by default
#   --cyclic       ranks are dealt to the nodes in turn: 0 and 2 on nodea, 1 and 3 on nodeb
#   --split-cores  each node has half of the cores for itself; by default both have all
#   --mbit N       the link carries N Mbit/s each way; as much as it can by default
#   --bytes FILE   writes the bytes that nodea sent and received, headers and what starts the job included
#
# Exit code: that of COMMAND, or 77 where namespaces are not permitted. Everything lives in a mount, process and network namespace
# of its own, so nothing is left behind, however this ends, and several may run at once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
net=10.77.0.0/24

skip() {
  echo "two_nodes: skipped: $*" >&2
  exit 77
}

usage() { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

refuse() {
  echo "two_nodes: $*" >&2
  usage >&2
  exit 2
}

# Who is root here; elsewhere whoever may make namespaces becomes root in one.
isolated() {
  local user=()
  [[ $(id -u) -eq 0 ]] || user=(--user --map-root-user)
  unshare "${user[@]}" --net --mount --pid --fork --kill-child --mount-proc "$@"
}

# Names of shared memory hold process numbers, which repeat in other process namespaces, so that is private, too.
mount_private() {
  mount -t tmpfs none /run && mount -t tmpfs none /dev/shm && mkdir /run/netns /run/ompi
  printf '127.0.0.1 localhost\n10.77.0.1 nodea\n10.77.0.2 nodeb\n' >/run/hosts
  mount --bind /run/hosts /etc/hosts
}

make_node() {  # NODE ADDRESS
  ip -n "$1" link set lo up
  ip -n "$1" addr add "$2/24" dev eth
  ip -n "$1" link set eth up
}

make_link() {
  ip netns add nodea && ip netns add nodeb
  ip link add eth netns nodea type veth peer name eth netns nodeb
  make_node nodea 10.77.0.1
  make_node nodeb 10.77.0.2
}

# A burst passes unshaped, so it is short, but longer than the 64 KiB packets that the kernel makes.
shape() {
  local node burst=$((32 * $1))
  if ((burst < 128 << 10)); then burst=$((128 << 10)); fi
  for node in nodea nodeb; do
    tc -n "$node" qdisc replace dev eth root tbf rate "${1}mbit" burst "$burst" latency 20ms
  done
}

use_both_nodes() {
  printf 'nodea slots=%d\nnodeb slots=%d\n' "$slots" "$slots" >/run/hostfile
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=/run/ompi
  export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$here/on_node.sh" OMPI_MCA_orte_leave_session_attached=1
  export OMPI_MCA_orte_default_hostfile=/run/hostfile
  export OMPI_MCA_rmaps_base_mapping_policy="$mapping" OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=$net OMPI_MCA_oob_tcp_if_include=$net
}

link_bytes() {
  local folder=/sys/class/net/eth/statistics
  ip netns exec nodea cat $folder/tx_bytes $folder/rx_bytes | paste -sd ' '
}

inside() {
  mount_private && make_link || skip "this machine does not let us make network namespaces"
  if [[ -n $mbit ]]; then shape "$mbit" || skip "this machine does not let us shape a link"; fi
  use_both_nodes
  local code=0
  "$here/on_node.sh" nodea "$(printf '%q ' "$@")" || code=$?
  if [[ -n $bytes ]]; then link_bytes >"$bytes"; fi
  exit "$code"
}

# on_node.sh reads these.
split_cores() {
  local half=$(($(nproc --all) / 2))
  ((half > 0)) || skip "one core cannot be split"
  export nodea_cores=0-$((half - 1)) nodeb_cores=$half-$((2 * half - 1))
}

main() {
  export slots=2 mapping=slot mbit='' bytes=''
  while [[ ${1:-} == --* ]]; do
    case $1 in
      --cyclic) mapping=node ;;
      --split-cores) split_cores ;;
      --slots | --mbit) [[ ${2:-} =~ ^[1-9][0-9]{0,5}$ ]] || refuse "$1 wants a number, got '${2:-}'" ;&
      --bytes) [[ $# -gt 1 ]] || refuse "$1 wants a value"
        printf -v "${1#--}" %s "$2" && shift ;;
      --help) usage && exit ;;
      *) refuse "unknown option $1" ;;
    esac
    shift
  done
  [[ $# -gt 0 ]] || refuse "which command?"
  command -v ip tc unshare >/dev/null || skip "needs the commands ip, tc (iproute2) and unshare (util-linux)"
  isolated true 2>/dev/null || skip "this machine does not let us make namespaces"
  isolated "${BASH_SOURCE[0]}" inside "$@"
}

if [[ ${1:-} == inside ]]; then inside "${@:2}"; else main "$@"; fi
