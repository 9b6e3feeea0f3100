#!/usr/bin/env bash
# Foreshard beside PyTorch's FSDP on this machine's cores: tokens/s and resident memory, pairs alternated in one run.
# An optional benchmark: it makes a virtual environment of its own (5 GB) and says so and ends well where torch cannot be had.
#
#   tests/bench/peer_pytorch.sh [--size 3m,14m,gpt2] [--rounds 3] [--peers fsdp1,fsdp2,fsdp2-compiled] [--dtype fp32|bf16] [--json FILE]
#
# FORESHARD_PEER_VENV  the virtual environment (default build/peer-venv; made if it is not there)
# FORESHARD_BIN        where foreshard-train is (default build/default/bin); without it only PyTorch is measured
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=${FORESHARD_PEER_VENV:-build/peer-venv}
export FORESHARD_BIN=${FORESHARD_BIN:-build/default/bin}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

has_torch() { "$venv/bin/python" -c 'import torch, numpy' 2>/dev/null; }

if ! has_torch; then
  echo "peer_pytorch: installing torch and numpy into $venv (minutes, 5 GB)"
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet torch numpy && has_torch; }; then
    echo "peer_pytorch: skipped: torch could not be installed here; set FORESHARD_PEER_VENV to an environment that has it"
    exit 0
  fi
fi
exec "$venv/bin/python" tests/bench/peer_pytorch.py "$@"
