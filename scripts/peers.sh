#!/usr/bin/env bash
# Measures tracepoints, and the systems that record them, next to their peers: times from the paired harness, instructions from callgrind,
# as a Markdown table and an SVG chart; lossless rates, bursts, processor time and memory from the harness of systems, as a table. Takes
# some minutes; the quieter the machine, the better the times. Instructions repeat exactly on any machine.
set -euo pipefail
cd "$(dirname "$0")/../benches/peers"

usage() {
    cat <<'USAGE'
usage: scripts/peers.sh [--out DIR] [--docs] [--quick] [--no-counts] [--no-lttng] [OPTION OF paired ...]

Writes peers.md, peers.svg, run.json, counts.tsv, systems.md and systems.json into DIR (default target/peers, in the directory of
this call).

  --docs       also replaces the figures of this kind of processor in docs/costs.md, or adds them, and the chart of it
  --quick      few short rounds, and instructions for one kernel: shows that it works
  --no-counts  no instruction counts
  --no-lttng   without LTTng-UST, which is also left out where its headers are missing; its rows that record are left out
               where lttng-sessiond, lttng or babeltrace2 is
  --mode M     only sites that are off, on or recorded; or only systems
  others       go to the harness of sites: --filter TEXT, --kernel TEXT, --rounds N, --micros N, --no-two, --sustained MS;
               systems are then left out. With --mode systems they go to that of systems: --rounds N, --pause MS,
               --system none|session|record|lttng|dial9, --figure steady|flat|burst|cost

LTTng's session daemon runs as the user of this script, without the kernel's tracer, and is stopped at the end. One that runs
already is used, and left alone.

Examples:
  scripts/peers.sh
  scripts/peers.sh --quick --out /tmp/peers
  scripts/peers.sh --no-counts --filter ours --kernel tight --rounds 101
  scripts/peers.sh --no-counts --mode recorded --kernel tight
  scripts/peers.sh --mode systems
  scripts/peers.sh --mode systems --figure burst --pause 60000 --rounds 1
USAGE
}

out=target/peers
counts=yes
lttng=yes
quick=no
docs=no
sites=yes
systems=yes
harness=()
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=${2:?--out takes a directory}; shift ;;
        --docs) docs=yes ;;
        --quick) quick=yes ;;
        --no-counts) counts=no ;;
        --no-lttng) lttng=no ;;
        --mode)
            case ${2:?--mode takes off, on, recorded or systems} in
                systems) sites=no ;;
                *) systems=no; harness+=(--mode "$2") ;;
            esac
            shift
            ;;
        -h | --help) usage; exit ;;
        *) harness+=("$1") ;;
    esac
    shift
done
# Options for the harness of sites choose some of these, not systems.
[ $sites = no ] || [ ${#harness[@]} -eq 0 ] || systems=no
[ $quick = no ] || harness+=(--quick)
case $out in /*) ;; *) out=${OLDPWD:-$PWD}/$out ;; esac

features=()
if [ $lttng = yes ]; then
    if printf '#include <lttng/tracepoint.h>\n' | "${CC:-cc}" -E - >/dev/null 2>&1; then
        features=(--features lttng)
    else
        echo "peers.sh: no headers of LTTng-UST (scripts/setup.sh --ci): its row will say so" >&2
    fi
fi
cargo build -q --release "${features[@]}" --bins
programs=$(realpath "${CARGO_TARGET_DIR:-target}")/release
paired=$programs/paired
# In its own directory: this one has flags that align loops.
[ $systems = no ] || (cd ../.. && cargo build -q --release -p tracectl)
mkdir -p "$out"

# LTTng's rows that record need its session daemon. It has its sockets below LTTNG_HOME if it is not root's.
sessiond=
stop_sessiond() {
    if [ -n "$sessiond" ]; then
        kill "$(cat "$sessiond/pid")" 2>/dev/null || true
        while lttng --no-sessiond list >/dev/null 2>&1; do sleep 0.1; done
        rm -rf "$sessiond"
    fi
}
trap stop_sessiond EXIT
start_sessiond() {
    for program in lttng lttng-sessiond babeltrace2; do
        command -v $program >/dev/null || { echo "peers.sh: no $program: LTTng does not record: run scripts/setup.sh --ci" >&2; return; }
    done
    if lttng --no-sessiond list >/dev/null 2>&1; then
        return
    fi
    sessiond=$(mktemp -d)
    export LTTNG_HOME=$sessiond
    lttng-sessiond --no-kernel --daemonize --pidfile="$sessiond/pid"
}
[ ${#features[@]} -eq 0 ] || start_sessiond

arguments=(--out "$out")
[ $docs = no ] || arguments+=(--docs ../../docs)
if [ $systems = yes ]; then
    tracectl=$(realpath "${CARGO_TARGET_DIR:-../../target}")/release/tracectl
    "$programs/systems" --json --tracectl "$tracectl" "${harness[@]}" >"$out/systems.json"
    "$programs/chart" --systems "$out/systems.json" "${arguments[@]}"
fi
[ $sites = yes ] || exit 0

"$paired" --json "${harness[@]}" >"$out/run.json"

# Instructions below the function that runs a kernel, for two lengths, so that instructions outside the loop cancel. --smc-check=all
# detects code that is rewritten while the program runs.
instructions() { # variant, kernel, iterations
    valgrind --tool=callgrind --smc-check=all --toggle-collect='tracepoint_peers::kernel::Compiled::run' \
        --callgrind-out-file=/dev/null "$paired" --count "$1" "$2" "$3" 2>&1 | awk '/Collected/ { print $4 }'
}

short=100
long=300
if [ $counts = yes ] && ! command -v valgrind >/dev/null; then
    echo "peers.sh: no valgrind: no instruction counts" >&2
    counts=no
fi
if [ $counts = yes ]; then
    kernels=(latency tight leaf eight sum)
    [ $quick = no ] || kernels=(tight)
    # Valgrind runs a translation of the program without the breakpoints of the operating system, so USDT is only counted while it
    # is off. The work of a session daemon or of other threads is not counted either.
    uncounted='-uprobe$|^lttng-(snapshot|discard)|-session|-appender|^ticklog|^dial9-record'
    : >"$out/counts.tsv"
    for kernel in "${kernels[@]}"; do
        events=1
        [ "$kernel" != eight ] || events=8
        # For variants that record, one kernel is enough.
        measured=$("$paired" --list | awk -v kernel="$kernel" -v uncounted="$uncounted" \
            '/^$/ { exit } $1 !~ uncounted && (kernel == "tight" || $2 != "recorded") { print $1 }')
        for variant in $measured; do
            first=$(instructions "$variant" "$kernel" $short || true)
            second=$(instructions "$variant" "$kernel" $long || true)
            awk -v variant="$variant" -v kernel="$kernel" -v first="$first" -v second="$second" -v n=$(((long - short) * events)) \
                'BEGIN { printf "%s\t%s\t%s\n", variant, kernel, (first == "" || second == "") ? "-" : (second - first) / n }' \
                >>"$out/counts.tsv"
        done
    done
    arguments+=(--counts "$out/counts.tsv")
fi

"$programs/chart" "$out/run.json" "${arguments[@]}"
