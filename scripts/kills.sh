#!/usr/bin/env bash
# Kills processes that record, and recovers what they leave: at each named point of the core, and at random moments, of which one in
# twenty at least has to hit a packet switch. CI kills a hundred at random; `--long` kills ten thousand, in an optimised build.
# TRACEPOINT_KILLS says another number.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
    # With the features of scripts/tests.sh, so that other crates are not compiled once more.
    "") kills=100; selected=(--workspace --features tracectl/nats,tracepoint-session/failpoints) ;;
    --long) kills=10000; selected=(--release -p tracepoint-session --features failpoints) ;;
    *) echo "usage: scripts/kills.sh [--long]" >&2; exit 2 ;;
esac

export TRACEPOINT_KILLS=${TRACEPOINT_KILLS:-$kills}
cargo test "${selected[@]}" --test crash_matrix --test kill_at_random -- --nocapture
