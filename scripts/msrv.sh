#!/usr/bin/env bash
# Checks the workspace with the oldest compiler that Cargo.toml declares, where rustup has it. Clippy's `incompatible_msrv` looks for
# newer parts of the standard library in any case.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/msrv.sh" >&2; exit 2; }

declared=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
toolchain=$(rustup toolchain list 2>/dev/null | grep -o "^$declared[.0-9]*-[^ ]*" | head -n 1 || true)
if [ -z "$toolchain" ]; then
    echo "msrv.sh: NOT BUILT with Rust $declared, which is declared: rustup toolchain install $declared" >&2
    [ -z "${TRACEPOINT_SKIPPED-}" ] || echo "SKIPPED build with Rust $declared: not installed" >>"$TRACEPOINT_SKIPPED"
    exit
fi
cargo "+$toolchain" check -q --workspace --target-dir target/msrv
echo "builds with Rust $declared" >&2
