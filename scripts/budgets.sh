#!/usr/bin/env bash
# Counts the instructions of an event under callgrind and compares them with scripts/budgets.tsv: a site that is off may add one instruction,
# and a change that makes an event dearer has to say so by a new budget. The counts repeat, but for the vDSO's clock, which takes
# five instructions more in a part of each second: what is over its budget is counted again, up to five times.
# Arguments are cargo's: with `--features tracepoint/usdt` the budgets are the same.
#
# `scripts/arm64.sh scripts/budgets.sh` counts those of aarch64, by qemu's log of the instructions that the first thread executes. The log slows the
# program down, whose clock needs its drain after some seconds: so the runs are short, and what a start takes more or less is a few instructions
# of each recorded event.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build -q --release -p tracepoint-benches --bin costs "$@"
program=${CARGO_TARGET_DIR:-target}/${CARGO_BUILD_TARGET-}/release/costs
if [ "${CARGO_BUILD_TARGET-}" = aarch64-unknown-linux-gnu ]; then
    column=3 short=1000 long=2000
    instructions() { # mode, iterations
        QEMU_SINGLESTEP=1 QEMU_LOG=exec,nochain "$program" "$1" "$2" 2>&1 >/dev/null | grep -c '^Trace 0:'
    }
else
    command -v valgrind >/dev/null || { echo "budgets.sh: valgrind is missing: run scripts/setup.sh --ci" >&2; exit 1; }
    column=2 short=10000 long=20000
    instructions() {
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" 2>&1 | awk '/Collected/ { print $4 }'
    }
fi

# What a mode adds to a loop without a site, for each event.
base=$(($(instructions none $long) - $(instructions none $short)))
over=
printf '%-14s %12s %7s\n' mode instructions budget
while read -r mode budget; do
    case $mode in "" | "#"*) continue ;; esac
    for _ in 1 2 3 4 5; do
        total=$(($(instructions "$mode" $long) - $(instructions "$mode" $short) - base))
        # Whole numbers: a buffer that is switched at another moment moves the second decimal.
        count=$(((total + (long - short) / 2) / (long - short)))
        [ "$count" -gt "$budget" ] || break
    done
    printf '%-14s %12d %7d\n' "$mode" "$count" "$budget"
    [ "$count" -le "$budget" ] || over+=" $mode"
done < <(cut -f "1,$column" scripts/budgets.tsv)
[ -z "$over" ] || { echo "budgets.sh: over budget:$over" >&2; exit 1; }
