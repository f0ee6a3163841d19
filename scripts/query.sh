#!/usr/bin/env bash
# Lints, builds and tests the workspace in query/: the store of Parquet files, and the program that writes it.
#
#   scripts/query.sh [--long] [ARGUMENT...]
#
# Without options it is what `cargo install --path query/program` builds. --long has the feature `cluster` as well, for queries by several machines:
# Ballista and what it needs take minutes to build, and few programs have it. One of its tests hangs in about half of the runs, because Ballista 55
# does not start a stage again that was about to start when an executor died (docs/query.md, Failures).
# In the profile of development, without debug information. Arguments go to cargo-nextest. DuckDB and Spark read what is written, moto serves S3, and
# nats-server carries traces; scripts/setup.sh --ci installs them. TRACEPOINT_CHAINS says how often a process of the whole chain is killed.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$PATH

packages=(--workspace --exclude tracepoint-cluster)
[ "${1-}" != --long ] || { packages=(--workspace --features tracectl-query/cluster); shift; }

# Symbols are a third of each of twenty programs of some 300 MB.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_STRIP=symbols
scripts/programs.sh >/dev/null
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy-rustc.sh
cd query
cargo build -q --locked "${packages[@]}" --all-targets
cargo nextest run --locked "${packages[@]}" --no-fail-fast --status-level slow "$@"
RUSTDOC=$PWD/../scripts/rustdoc-lints.sh cargo test -q --locked "${packages[@]}" --doc
"${CARGO_TARGET_DIR:-target}/debug/examples/selective" "${TRACEPOINT_SELECTIVE:-1000000}" 1
