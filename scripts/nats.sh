#!/usr/bin/env bash
# Lints, builds and tests what the cargo feature `nats` adds: a sink and a collector that publish to a NATS broker, and collectors that take
# traces from it.
#
#   scripts/nats.sh [ARGUMENT...]
#
# In the profile of development, without debug information. Arguments go to cargo-nextest, which runs the tests with servers. They run
# nats-server, which scripts/setup.sh --ci installs.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$PATH

export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
packages=(-p tracepoint-sinks -p tracepoint-control -p tracepoint-collector -p tracectl)
features=(--features tracepoint-sinks/nats,tracepoint-control/nats,tracepoint-collector/nats,tracectl/nats)
cargo clippy -q "${packages[@]}" "${features[@]}" --lib --bins -- -D warnings
cargo clippy -q -p tracectl --features nats --test nats -- -D warnings
cargo test -q -p tracepoint-collector --features nats --lib -- nats:: publish::
cargo nextest run -p tracectl --features nats --test nats --no-fail-fast "$@"
