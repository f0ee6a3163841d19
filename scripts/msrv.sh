#!/usr/bin/env bash
# Builds the workspace with the oldest compiler that Cargo.toml declares, and tests the ring and the core with it. Clippy's `incompatible_msrv`
# finds newer parts of the standard library in any case, but neither newer syntax nor what dependencies need.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/msrv.sh" >&2; exit 2; }

programs=$(scripts/declared-rust.sh)
export PATH=$programs:$PATH CARGO_TARGET_DIR=$PWD/target/msrv
cargo check -q --locked --workspace
cargo test -q --locked -p tracepoint-ring -p tracepoint-core --lib >&2
echo "builds with $(rustc --version), which Cargo.toml declares" >&2
