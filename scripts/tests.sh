#!/usr/bin/env bash
# Runs the tests of the workspace by cargo-nextest, which scripts/setup.sh installs.
#
#   scripts/tests.sh [--quick|--ci|--all] [ARGUMENT…]
#
# Without an option: those of scripts/test.sh. --quick runs the unit tests alone; --ci runs those that scripts/ci.sh has besides; --all runs
# all. The sets are profiles in .config/nextest.toml. Arguments go to the runner: `scripts/tests.sh -p tracepoint-reader`. Without arguments: the
# tests of the whole workspace, with the feature `nats`.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$PATH

profile=default
targets=()
case "${1-}" in
    --quick) targets=(--lib); shift ;;
    --ci | --all) profile=${1#--}; shift ;;
esac
[ $# -gt 0 ] || set -- --workspace --features tracectl/nats
command -v cargo-nextest >/dev/null || { echo "tests.sh: cargo-nextest is missing: run scripts/setup.sh" >&2; exit 1; }

# The wrapper with which the steps of a whole run lint is not for the builds that tests start.
wrapper=()
if [ -n "${RUSTC_WORKSPACE_WRAPPER-}" ]; then
    wrapper=(--config "build.rustc-workspace-wrapper=\"$RUSTC_WORKSPACE_WRAPPER\"")
    unset RUSTC_WORKSPACE_WRAPPER
fi

# Many tests wait for timers of protocols and for other processes: half as many more tests than processors run at once.
export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$(($(nproc) * 3 / 2))}
exec cargo nextest run --profile "$profile" "${wrapper[@]}" "${targets[@]}" "$@"
