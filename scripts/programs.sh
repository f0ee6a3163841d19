#!/usr/bin/env bash
# Builds `tracectl` and the example `threads`, and prints the directory that has them: scripts for other machines compare with these. They are the
# programs that scripts/tests.sh builds in scripts/ci.sh: the same packages, features and lints, so that nothing is compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/programs.sh" >&2; exit 2; }
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy-rustc.sh
# An example: its packages have the features that tests give them.
cargo build -q --workspace --features tracectl/nats --bin tracectl --example threads
realpath "${CARGO_TARGET_DIR:-target}/debug"
