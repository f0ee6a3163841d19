#!/usr/bin/env bash
# Builds the book of docs/ into target/book, and checks it: code blocks compile, links lead to files, and the README's figures are those
# of docs/costs.md.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -eq 0 ] || { echo "usage: scripts/book.sh" >&2; exit 2; }
command -v mdbook >/dev/null || { echo "book.sh: mdbook is missing: run scripts/setup.sh" >&2; exit 1; }
mdbook build
cargo test -q -p tracepoint-book
echo "book.sh: the book is $PWD/target/book/index.html" >&2
