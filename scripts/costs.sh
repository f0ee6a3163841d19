#!/usr/bin/env bash
# Counts the instructions of a site with callgrind and prints them as a table: the difference of two runs of different length,
# less that of the same loop without a site, for one event. Instruction counts repeat exactly; times on a shared machine do not
# (for those: cargo bench -p tracepoint-benches).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "costs.sh: valgrind is missing: run scripts/setup.sh" >&2; exit 1; }

cargo build -q --release -p tracepoint-benches --bin costs
program=${CARGO_TARGET_DIR:-target}/release/costs
short=10000
long=20000

instructions() { # mode, iterations
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 |
        awk '/Collected/ { print $4 }'
}

base=$(($(instructions none $long) - $(instructions none $short)))
echo "| mode | instructions per event |"
echo "|---|---|"
for mode in off-lazy off-function probe recorded recorded-2 recorded-4; do
    total=$(($(instructions "$mode" $long) - $(instructions "$mode" $short)))
    awk -v mode="$mode" -v n="$((total - base))" -v per="$((long - short))" \
        'BEGIN { printf "| %s | %.1f |\n", mode, n / per }'
done
