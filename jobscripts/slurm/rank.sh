#!/usr/bin/env bash
# One rank of a batch job: rank.sh NOTE COMMAND...
#
# Runs the command. The first rank that ends with another code than 0 writes it into the file NOTE; one that ends with 0 leaves NOTE.ended.
# With 75, "saved, start me again", the rank ends with 0: srun with --kill-on-bad-exit, and mpirun, kill all ranks when one ends with
# another code, also those that are just ending, and srun then reports the kill (143) instead of the code.
set -uo pipefail
note=$1 && shift
trap '' USR1 # the command answers it; this shell shall outlive it

"$@"
code=$?
if ((code == 0)); then
  [[ -e $note.ended ]] || : >"$note.ended"
  exit 0
fi
(set -o noclobber && echo "$code" >"$note") 2>/dev/null
((code != 75)) || exit 0
exit "$code"
