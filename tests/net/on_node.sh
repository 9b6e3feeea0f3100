#!/bin/bash
# on_node.sh [OPTIONS] NODE COMMAND...: as `ssh NODE COMMAND...`, to a node of two_nodes.sh. The node has a host name of its own, by
# which Open MPI tells nodes apart.
set -euo pipefail
while [[ $1 == -* ]]; do shift; done
node=$1 && shift
exec ip netns exec "$node" unshare --uts bash -c "hostname $node; $*"
