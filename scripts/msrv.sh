#!/usr/bin/env bash
# Builds the workspace with the oldest compiler that Cargo.toml declares, and tests the ring and the core with it. Clippy's `incompatible_msrv`
# finds newer parts of the standard library in any case, but neither newer syntax nor what dependencies need. Builds the sinks of a session by
# themselves as well. There must be no warning: the other builds of the workspace have all features, so that unused code shows here.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/msrv.sh" >&2; exit 2; }

programs=$(scripts/declared-rust.sh)
# As in scripts/systems.sh, which shares the build: with a target, the flags are not those of programs that run while compiling.
export PATH=$programs:$PATH CARGO_TARGET_DIR=$PWD/target/msrv CARGO_BUILD_TARGET=x86_64-unknown-linux-gnu
export CARGO_PROFILE_DEV_DEBUG=0 RUSTFLAGS="-D warnings"
cargo check -q --locked --workspace
# What the features leave out must not leave unused code, or need something that is left out.
for features in session control dt stream udp; do
    cargo check -q --locked -p tracepoint --features "$features"
done
cargo test -q --locked -p tracepoint-ring -p tracepoint-core --lib >&2
echo "builds with $(rustc --version), which Cargo.toml declares" >&2
