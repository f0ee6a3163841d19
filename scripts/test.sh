#!/usr/bin/env bash
# All tests, as CI runs them, with a table of what each step took.
#
#   scripts/test.sh           everything but the long campaigns
#   scripts/test.sh --quick   formatting, lints, and the tests that are fast: for every change
#   scripts/test.sh --long    also the campaigns: a million probe changes, ten thousand kills, threads and processes, a thousand
#                             snapshots, two thousand programs, every cell of the matrix, ten thousand bad networks, mutated models,
#                             half an hour of processes and recorders that are killed, a brief comparison with other tracers, ten minutes of
#                             fuzzing for each decoder
#
# What this machine cannot run fails, unless TRACEPOINT_ALLOW_SKIP is set; the table then counts it. A build with the declared version of
# Rust is counted as skipped, too, where that toolchain is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=whole
long=
case "${1-}" in
    "") ;;
    --quick) mode=quick ;;
    --long)
        mode=long
        long=--long
        export TRACEPOINT_ROUNDS=500000 TRACEPOINT_THREADS=10000 TRACEPOINT_PROCESSES=10000 TRACEPOINT_SNAPSHOTS=1000
        export TRACEPOINT_CROWD=1200 TRACEPOINT_FLEET=1000 TRACEPOINT_SESSIONS=2000
        export TRACEPOINT_PROGRAMS=2000 DATATRACE_KILLS=5000 TRACEPOINT_UDP_SEEDS=10000 TRACEPOINT_NETWORKS=100 TRACEPOINT_CHAINS=50 TRACEPOINT_SELECTIVE=100000000 NEXTEST_RETRIES=0
        ;;
    *) echo "usage: scripts/test.sh [--quick|--long]" >&2; exit 2 ;;
esac

export PATH=$PWD/target/tools/bin:$PATH
TRACEPOINT_SKIPPED=$(mktemp "${TMPDIR:-/tmp}/skipped.XXXXXX")
export TRACEPOINT_SKIPPED

rows=()
TIMEFORMAT='%R %U %S'
# Runs a command as the step of a name; `bash -e` stops at the first that fails, and the table says which.
step() { # name, command
    local name=$1 times
    shift
    printf '\n== %s: %s\n' "$name" "$*" >&2
    rows+=("$name|failed")
    exec 3>&1 4>&2
    local status=0
    times=$({ time "$@" 1>&3 2>&4; } 2>&1) || status=$?
    exec 3>&- 4>&-
    local seconds user system
    read -r seconds user system <<<"${times##*$'\n'}"
    local result=passed
    [ $status -eq 0 ] || result=failed
    rows[-1]=$(awk -v name="$name" -v result=$result -v wall="$seconds" -v cpu="$user" -v kernel="$system" \
        'BEGIN { printf "%-12s %7.1f s %7.1f s  %s", name, wall, cpu + kernel, result }')
    return $status
}

summary() {
    printf '\n%-12s %9s %9s\n' step time CPU >&2
    printf '%s\n' "${rows[@]}" >&2
    printf 'in all: %d min %d s\n' $((SECONDS / 60)) $((SECONDS % 60)) >&2
    if [ -s "$TRACEPOINT_SKIPPED" ]; then
        sort "$TRACEPOINT_SKIPPED" >&2
        echo "$(wc -l <"$TRACEPOINT_SKIPPED") skipped" >&2
    fi
    rm -f "$TRACEPOINT_SKIPPED"
}
trap summary EXIT

# Whether all workspaces are formatted.
formatted() {
    local workspace
    for workspace in . benches/peers examples/service fuzz query tests/fixtures tests/fixtures/abort; do
        cargo fmt --manifest-path "$workspace/Cargo.toml" --all --check || return 1
    done
}

step format formatted
if [ $mode = quick ]; then
    step lint cargo clippy -q --workspace --all-targets -- -D warnings
    step tests scripts/tests.sh --quick
    exit
fi

step setup scripts/setup.sh
step lint cargo clippy -q --workspace --all-targets -- -D warnings
step lint-points cargo clippy -q -p tracepoint-control --features failpoints --test crash_matrix --test kill_at_random -- -D warnings
step tests scripts/tests.sh
step doc-tests cargo test -q --workspace --doc
RUSTDOCFLAGS="-D warnings" step docs cargo doc -q --workspace --no-deps
# Its code blocks and links are among the tests above.
step book mdbook build
step deny cargo deny check bans licenses sources
step msrv scripts/msrv.sh
step new-program scripts/new-program.sh
step flag-sites scripts/flag-sites.sh
step portable scripts/portable.sh
step abort scripts/abort.sh
step matrix scripts/matrix.sh ${long}
step kills scripts/kills.sh ${long}
${long:+step chaos scripts/chaos.sh --long}
${long:+step soak scripts/soak.sh --long}
${long:+step service scripts/service.sh}
${long:+step peers scripts/peers.sh --quick --no-counts}
step budgets scripts/budgets.sh
step helgrind scripts/helgrind.sh
step models scripts/models.sh ${long}
step fuzz scripts/fuzz.sh ${long}
step nats scripts/nats.sh
step query scripts/query.sh
step deny-query cargo deny --manifest-path query/Cargo.toml check bans licenses sources
