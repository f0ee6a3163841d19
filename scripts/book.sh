#!/usr/bin/env bash
# Builds the book of docs/ into target/book. Its code blocks, links and figures are checked by `cargo test -p tracepoint-book`.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 0 ] || { echo "usage: scripts/book.sh" >&2; exit 2; }
<<<<<<< HEAD
PATH=$PATH:$PWD/target/tools/bin
=======
export PATH=$PWD/target/tools/bin:$PATH
>>>>>>> h/docs
command -v mdbook >/dev/null || { echo "book.sh: mdbook is missing: run scripts/setup.sh" >&2; exit 1; }
output=$(mdbook build 2>&1) || { printf '%s\n' "$output" >&2; exit 1; }
if grep -qE 'WARN|ERROR' <<<"$output"; then
    printf '%s\n' "$output" >&2
    exit 1
fi
echo "book.sh: the book is $PWD/target/book/index.html" >&2
