#!/usr/bin/env bash
# Counts the instructions of an event, and of a filter, with callgrind: the difference of two runs of different length, less that of the
# same loop without a site, for one event. Instruction counts repeat exactly; times on a shared machine do not (scripts/peers.sh has
# those). The last table has times all the same: those of a packet's checksum, beside what else a drain does with the packet.
#
#   scripts/costs.sh          prints three Markdown tables
#   scripts/costs.sh --docs   also puts them into docs/costs.md and docs/filters.md
set -euo pipefail
cd "$(dirname "$0")/.."
docs=
case "$*" in
    "") ;;
    --docs) docs=yes ;;
    *) echo "usage: scripts/costs.sh [--docs]" >&2; exit 2 ;;
esac
command -v valgrind >/dev/null || { echo "costs.sh: valgrind is missing: run scripts/setup.sh --ci" >&2; exit 1; }

cargo build -q --release -p tracepoint-benches --bin costs --bin filters --bin checksum
programs=${CARGO_TARGET_DIR:-target}/release
short=10000
long=20000

instructions() { # program, mode, iterations
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$programs/$1" "$2" "$3" 2>&1 |
        awk '/Collected/ { print $4 }'
}

added() { # program, mode, what to subtract
    local total=$(($(instructions "$1" "$2" $long) - $(instructions "$1" "$2" $short)))
    awk -v n="$((total - $3))" -v per="$((long - short))" 'BEGIN { printf "%.0f", n / per }'
}

events() {
    local base mode label
    base=$(($(instructions costs none $long) - $(instructions costs none $short)))
    printf '| | instructions |\n|---|---|\n'
    while IFS='|' read -r mode label; do
        printf '| %s | %s |\n' "$label" "$(added costs "$mode" "$base")"
    done <<'MODES'
off-lazy|off, `trace!(x(a, b, c))`
off-function|off, `trace_x(a, b, c)`
probe|on, an empty probe
recorded|on, recorded by one channel
lost|on, lost because the ring is full
ringless|on, lost because the thread has no ring
watched|on, recorded by one channel beside a trigger with the rule `c > 4_000_000_000`, which does not match
recorded-2|on, recorded by two channels
recorded-4|on, recorded by four channels
context-user|on, recorded by one channel with the context `User`
context-name|the same with `ThreadName`
context-cpu|the same with `Cpu`
context-stack|the same with `CallStack`, of a few callers
MODES
}

filters() {
    local base expression
    # Each less the filter that rejects every event.
    base=$(($(instructions filters false $long) - $(instructions filters false $short)))
    printf '| filter | instructions |\n|---|---|\n'
    while read -r expression; do
        printf '| `%s` | %s |\n' "${expression//|/\\|}" "$(added filters "$expression" "$base")"
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
}

put() { # page, name of its marked block; the new block is the standard input
    local begin="<!-- $2: begin; written by scripts/costs.sh --docs -->" end="<!-- $2: end -->"
    grep -qxF "$begin" "$1" && grep -qxF "$end" "$1" ||
        { echo "costs.sh: $1 has no block between \`$begin\` and \`$end\`" >&2; exit 1; }
    awk -v begin="$begin" -v end="$end" '
        NR == FNR { block = block $0 "\n"; next }
        $0 == end { inside = 0 }
        !inside { print }
        $0 == begin { printf "%s", block; inside = 1 }
    ' - "$1" >"$1.new"
    mv "$1.new" "$1"
}

events=$(events)
filters=$(filters)
checksum=$("$programs/checksum" 2001)
printf '%s\n\n%s\n\n%s\n' "$events" "$filters" "$checksum"
if [ -n "$docs" ]; then
    printf '%s\n' "$events" | put docs/costs.md costs
    printf '%s\n' "$checksum" | put docs/costs.md checksum
    printf '%s\n' "$filters" | put docs/filters.md filters
fi
