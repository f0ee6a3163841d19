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
    # As in .config/nextest.toml; whole binaries are not left out.
    for module in linkage disassembly fixtures failpoints call_stack chaos stress stress_keys any_program snapshots many_threads \
        many_processes read::weather; do
        skip+=(--skip "$module::")
    done
    export DATATRACE_KILLS=${DATATRACE_KILLS:-20} TRACEPOINT_KILLS=${TRACEPOINT_KILLS:-5}
fi
[ $# -gt 0 ] || set -- --workspace

if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --profile "$profile" "$@"
else
    echo "tests.sh: no cargo-nextest: tests run by cargo test" >&2
    cargo test --no-fail-fast --lib --bins --tests --examples "$@" ${skip[0]+-- "${skip[@]}"}
fi
