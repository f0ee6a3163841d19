#!/usr/bin/env bash
# Runs the tests of the workspace: by cargo-nextest where it is installed, by `cargo test` where not.
#
#   scripts/tests.sh [--quick] [ARGUMENT...]
#
# --quick leaves out what takes long (.config/nextest.toml). Arguments go to the runner: `scripts/tests.sh -p tracepoint-reader`.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=default
skip=()
if [ "${1-}" = --quick ]; then
    shift
    profile=quick
    # As in .config/nextest.toml, except whole programs, and `off::`, which would also match `cut_off::`.
    for name in linkage:: usdt:: disassembly:: fixtures:: failpoints:: call_stack:: chaos:: stress:: stress_keys:: any_program:: \
        snapshots:: many_threads:: many_processes:: streamed:: stock_lttng:: stream_relay:: stream_collector:: recorder_load:: \
        many_sessions:: read::network_faults:: treehash::the_toolchain_is_hashed_without_loss; do
        skip+=(--skip "$name")
    done
    export DATATRACE_KILLS=${DATATRACE_KILLS:-20} TRACEPOINT_KILLS=${TRACEPOINT_KILLS:-5}
fi
[ $# -gt 0 ] || set -- --workspace

# Many tests wait for timers of protocols and for other processes: half as many more tests than processors run at once.
threads=$(($(nproc) * 3 / 2))
export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$threads} RUST_TEST_THREADS=${RUST_TEST_THREADS:-$threads}

if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --profile "$profile" "$@"
else
    echo "tests.sh: no cargo-nextest: tests run by cargo test" >&2
    cargo test --no-fail-fast --lib --bins --tests --examples "$@" ${skip[0]+-- "${skip[@]}"}
fi
