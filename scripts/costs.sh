#!/usr/bin/env bash
# Counts the instructions of a site with callgrind and prints them as a table: the difference of two runs of different length,
# less that of the same loop without a site, for one event. Instruction counts repeat exactly; times on a shared machine do not
# (for those: cargo bench -p tracepoint-benches).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "costs.sh: valgrind is missing: run scripts/setup.sh" >&2; exit 1; }

cargo build -q --release -p tracepoint-benches --bin costs --bin filters
programs=${CARGO_TARGET_DIR:-target}/release
short=10000
long=20000

instructions() { # program, mode, iterations
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$programs/$1" "$2" "$3" 2>&1 |
        awk '/Collected/ { print $4 }'
}

row() { # program, mode, what to subtract
    local total=$(($(instructions "$1" "$2" $long) - $(instructions "$1" "$2" $short)))
    awk -v mode="${2//|/\\\\|}" -v n="$((total - $3))" -v per="$((long - short))" \
        'BEGIN { printf "| `%s` | %.1f |\n", mode, n / per }'
}

base=$(($(instructions costs none $long) - $(instructions costs none $short)))
echo "| mode | instructions per event |"
echo "|---|---|"
for mode in off-lazy off-function probe recorded recorded-2 recorded-4 context-user context-name context-cpu context-stack; do
    row costs "$mode" $base
done

# Each less the filter that refuses everything.
base=$(($(instructions filters false $long) - $(instructions filters false $short)))
printf '\n| filter | instructions |\n|---|---|\n'
while read -r expression; do
    row filters "$expression" $base
done <<'EXPRESSIONS'
b
i == 8
u > 4_000_000_000
f > 1.5
i > f
i > 100 && u > 1
i == 8 || u > 4_000_000_000
u & 0x4000_0000
!(i | 1)
~i << 64
e == "Idle"
s == "postgres: reader"
s == "mysqld*"
s == "*reader"
s == "*x*y*z*"
s != t
data == "POST *"
i > 100 && s == "postgres*" || !(u | 0xff)
EXPRESSIONS
