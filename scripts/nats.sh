#!/usr/bin/env bash
# Lints, builds and tests what the cargo feature `nats` adds: a sink and a collector that publish to a NATS broker, and collectors that take
# traces from it.
#
#   scripts/nats.sh [ARGUMENT...]
#
# In the profile of development, without debug information. Arguments go to the runner of the tests with servers: cargo-nextest where it is
# installed, otherwise `cargo test`. They run nats-server, which scripts/setup.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
packages=(-p tracepoint-sinks -p tracepoint-control -p tracepoint-collector -p tracectl)
features=(--features tracepoint-sinks/nats,tracepoint-control/nats,tracepoint-collector/nats,tracectl/nats)
cargo clippy -q "${packages[@]}" "${features[@]}" --lib --bins -- -D warnings
cargo clippy -q -p tracectl --features nats --test nats -- -D warnings
cargo test -q -p tracepoint-collector --features nats --lib -- nats:: publish::
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run -p tracectl --features nats --test nats --no-fail-fast "$@"
else
    cargo test -q -p tracectl --features nats --test nats "$@"
fi
