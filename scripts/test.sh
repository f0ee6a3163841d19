#!/usr/bin/env bash
# All tests, as CI runs them. `--long` adds the campaigns: a million probe changes, ten thousand kills, threads and processes, a
# thousand snapshots, two thousand programs, every cell of the matrix, ten
# thousand bad networks, mutated models, ten minutes of fuzzing for each decoder.
set -euo pipefail
cd "$(dirname "$0")/.."

long=
case "${1-}" in
    "") ;;
    --long)
        long=--long
        export TRACEPOINT_ROUNDS=500000 TRACEPOINT_THREADS=10000 TRACEPOINT_PROCESSES=10000 TRACEPOINT_SNAPSHOTS=1000
        export TRACEPOINT_PROGRAMS=2000 DATATRACE_KILLS=5000 TRACEPOINT_UDP_SEEDS=10000
        ;;
    *) echo "usage: scripts/test.sh [--long]" >&2; exit 2 ;;
esac

step() { printf '\n== %s\n' "$*" >&2; "$@"; }

step scripts/setup.sh
step cargo fmt --all --check
step cargo clippy --workspace --all-targets -- -D warnings
step cargo clippy -p tracepoint-control --features failpoints --test crash_matrix --test kill_at_random -- -D warnings
step cargo test --workspace --no-fail-fast
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps
step scripts/portable.sh
step scripts/abort.sh
step scripts/matrix.sh ${long}
step scripts/kills.sh ${long}
${long:+step scripts/chaos.sh --long}
step scripts/helgrind.sh
step scripts/models.sh ${long}
step scripts/fuzz.sh ${long}
