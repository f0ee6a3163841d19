#!/usr/bin/env bash
# Does what README.md shows: a new program that depends on `tracepoint` alone, with the README's first Rust block as its main.rs, prints
# the trace that stands below that block.
#
#   scripts/new-program.sh                       with the crate of this checkout
#   scripts/new-program.sh --source DIRECTORY    with the packages of a directory source, as `scripts/packages.sh` makes it
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dependency=(--path "$root/tracepoint")
case "$#${1-}" in
    0) source= ;;
    2--source) source=$(realpath "$2"); dependency=("tracepoint@$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)") ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
# That of the workspace: what it has built of other crates serves here as well.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}

work=$(mktemp -d "${TMPDIR:-/tmp}/new-program.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The first block of a language, from line `start` on.
block() { # language, start
    awk -v fence="\`\`\`$1" -v start="$2" 'NR < start { next } in_block && /^```/ { exit } in_block { print } $0 == fence { in_block = 1 }' \
        README.md
}
# What differs from run to run: times, and the ids of process and thread.
same() { sed -E 's/^[0-9:.]+ app\[[0-9/]+\] /TIME app[PID] /'; }

program=$(block rust 1)
line=$(grep -n -m 1 '^```rust$' README.md | cut -d : -f 1)
shown=$(block console "$line" | grep -v '^\$')
[ -n "$program" ] && [ -n "$shown" ] || { echo "new-program.sh: README.md has no Rust block with output below it" >&2; exit 1; }

cd "$work"
cargo new -q --vcs none app
cd app
# The versions that the workspace was tested with; nothing is downloaded.
cp "$root/Cargo.lock" .
if [ "$source" ]; then
    mkdir .cargo
    printf '[source.%s]\n%s = "%s"\n' crates-io replace-with packages packages directory "$source" >.cargo/config.toml
fi
cargo add -q --offline --features session "${dependency[@]}"
printf '%s\n' "$program" >src/main.rs
cargo run -q --offline >"$work/printed"
if ! diff -u --label README.md <(same <<<"$shown") --label printed <(same <"$work/printed") >&2; then
    echo "new-program.sh: README.md shows something else than the program prints" >&2
    exit 1
fi
echo "a new program with README.md's first block prints what README.md shows" >&2
