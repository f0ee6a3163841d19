#!/usr/bin/env bash
# Processes and sessions that come, change, end and are killed at random, controlled from outside; half of the processes are daemons that close
# all descriptors above 2 after their start, and look at the end whether their own files are open and untouched: CI takes 5 processes and 3 sessions;
# `--long` 20 and 3 for ten thousand steps, then 300 processes for 400. TRACEPOINT_CHAOS='PROCESSES SESSIONS STEPS' says otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
    "") sizes=("5 3 60") ;;
    --long) sizes=("20 3 10000" "300 3 400") ;;
    *) echo "usage: scripts/chaos.sh [--long]" >&2; exit 2 ;;
esac
if [ -n "${TRACEPOINT_CHAOS-}" ]; then
    sizes=("$TRACEPOINT_CHAOS")
fi

for size in "${sizes[@]}"; do
    TRACEPOINT_CHAOS=$size cargo test -p tracepoint-controller --test agent -- chaos:: --nocapture
done
