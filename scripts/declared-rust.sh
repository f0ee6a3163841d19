#!/usr/bin/env bash
# Prints the directory of the programs of the oldest Rust that Cargo.toml declares. rustup installs it into target/tools/rustup (600 MB, once), for
# the given targets as well.
#
#   scripts/declared-rust.sh [TARGET]…
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1-}" in -*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

declared=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
export RUSTUP_HOME=$PWD/target/tools/rustup
# The directory of the compiler's programs, if it is installed.
programs() {
    rustup toolchain list -v 2>/dev/null | sed -n "s|^$declared[.0-9]*-.*[[:space:]]\(/.*\)|\1/bin|p" | head -n 1
}
failed() { echo "declared-rust.sh: $*" >&2; exit 1; }

command -v rustup >/dev/null || failed "no rustup, which installs Rust $declared: apt-get install rustup, or see rustup.rs"
if [ -z "$(programs)" ]; then
    echo "declared-rust.sh: installing Rust $declared into $RUSTUP_HOME" >&2
    rustup -q toolchain install --no-self-update --profile minimal "$declared" >&2 ||
        failed "Rust $declared was not fetched: connect this machine to a network, and run the script again"
fi
found=$(programs)
for target in "$@"; do
    [ -d "$found/../lib/rustlib/$target" ] || rustup -q target add --toolchain "$declared" "$target" >&2 ||
        failed "the standard library for $target was not fetched: connect this machine to a network, and run the script again"
done
echo "$found"
