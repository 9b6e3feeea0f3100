#!/usr/bin/env bash
# on_node.sh [OPTIONS] NODE COMMAND...: as `ssh NODE COMMAND...`, to a node of two_nodes.sh. The node has a host name of its own, by
# which Open MPI tells nodes apart.
set -euo pipefail
while [[ $1 == -* ]]; do shift; done
node=$1 && shift
cores=${node}_cores
exec taskset -c "${!cores:-0-$(($(nproc --all) - 1))}" ip netns exec "$node" unshare --uts bash -c "hostname $node; $*"
