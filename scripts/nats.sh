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
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy-rustc.sh
cargo test -q -p tracepoint-collector --features nats --lib -- nats:: publish::
cargo nextest run -p tracectl --features nats --test nats --no-fail-fast "$@"
