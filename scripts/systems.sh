#!/usr/bin/env bash
# Checks what builds on systems other than Linux on x86-64, with the oldest Rust that Cargo.toml declares, and prints it as a table.
#
#   scripts/systems.sh             all targets
#   scripts/systems.sh TARGET…     these
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1-}" in -*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-pc-windows-gnu x86_64-unknown-freebsd aarch64-linux-android riscv64gc-unknown-linux-gnu \
    wasm32-unknown-unknown

if ! programs=$(scripts/declared-rust.sh "$@"); then
    [ -n "${TRACEPOINT_SKIPPED-}" ] || exit 1
    echo "SKIPPED systems: the oldest Rust that Cargo.toml declares, or a target's standard library, was not fetched" >>"$TRACEPOINT_SKIPPED"
    exit
fi
# Programs of the host are those of scripts/msrv.sh.
export PATH=$programs:$PATH CARGO_TARGET_DIR=$PWD/target/msrv RUSTFLAGS="-D warnings"
status=0
check() { # target, what, arguments of cargo
    local target=$1 what=$2 result=checked
    shift 2
    cargo check -q --locked --target "$target" "$@" || { result=FAILED; status=1; }
    printf '%-30s %-40s %s\n' "$target" "$what" "$result"
}
for target in "$@"; do
    check "$target" "declarations and call sites" --manifest-path tests/fixtures/Cargo.toml -p edition2024
done
exit $status
