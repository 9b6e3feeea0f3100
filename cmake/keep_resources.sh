#!/bin/sh
# keep_resources.sh nvcc arguments…: compiles, and keeps what ptxas says of the kernels' resources as OBJECT.resources.
set -u
previous='' object=''
for argument in "$@"; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$@" 2>"$report"
status=$?
pattern="^ptxas info|^ +[0-9]+ bytes stack frame"
[ -n "$object" ] && grep -E "$pattern" "$report" >"$object.resources"
grep -vE "$pattern" "$report" >&2
exit $status
