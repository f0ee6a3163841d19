#!/usr/bin/env bash
# What a change has to pass before it is proposed, and a table of what each step took.
#
#   scripts/test.sh              all of it
#   scripts/test.sh --quick      after each edit: formatting, lints, unit tests, and the structure of the workspace
#   scripts/test.sh -p CRATE …   what concerns one crate: its lints, all its tests, its documentation, the structure of the workspace
#   scripts/test.sh STEP …       these steps
#   scripts/test.sh --list       the steps
#
# The steps need what scripts/setup.sh installs. What needs larger programs, or builds everything once more, is in scripts/ci.sh.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }

# Whether all workspaces are formatted: their members alone, because `cargo fmt --all` takes the packages that they depend on as well.
formatted() {
    local workspace names status=0
    for workspace in . benches/peers examples/service fuzz query tests/fixtures tests/fixtures/abort; do
        names=$(cargo metadata --no-deps --format-version 1 --manifest-path "$workspace/Cargo.toml" | jq -r '.packages[].name | "-p", .')
        mapfile -t names <<<"$names"
        cargo fmt --manifest-path "$workspace/Cargo.toml" "${names[@]}" --check || status=1
    done
    return $status
}

documented() { # argument of cargo…
    RUSTDOCFLAGS="-D warnings" cargo doc -q --no-deps "$@"
}

# The doc tests of the libraries as scripts/tests.sh has built them, and the lints of their documentation.
doc_tests() {
    RUSTDOC=$PWD/scripts/rustdoc-lints.sh cargo test -q --workspace --features tracectl/nats --doc
}

case "${1-}" in
    -h | --help) usage; exit ;;
    --list) shift; no_more "$@"; mode=list ;;
    --quick)
        shift
        no_more "$@"
        step --needs jq format formatted
        step lint cargo clippy -q --workspace --features tracectl/nats --all-targets -- -D warnings
        step tests scripts/tests.sh --quick
        step structure scripts/tests.sh -p tracepoint-house
        finish
        exit
        ;;
    -p)
        crates=()
        while [ "${1-}" = -p ]; do
            crates+=(-p "${2:?-p takes the name of a crate}")
            shift 2
        done
        no_more "$@"
        step --needs jq format formatted
        step --disk 3 lint cargo clippy -q "${crates[@]}" --all-targets -- -D warnings
        step --disk 6 tests scripts/tests.sh --all "${crates[@]}" -p tracepoint-house -p tracepoint-book
        step --disk 2 doc-tests cargo test -q "${crates[@]}" --doc
        step --disk 2 docs documented "${crates[@]}"
        finish
        exit
        ;;
    -*) usage >&2; exit 2 ;;
    *) steps "$@" ;;
esac

step --disk 1 setup scripts/setup.sh
step --needs jq format formatted
# Code is linted while the tests are compiled, and documentation while the doc tests are: passes of their own would compile all dependencies again.
step --disk 8 tests linted scripts/tests.sh
step --disk 2 benches linted cargo build -q --workspace --features tracectl/nats --bench '*'
step --disk 2 doc-tests linted doc_tests
# Its code blocks and links are among the tests.
step --needs mdbook book scripts/book.sh
step --needs cargo-deny deny cargo deny check bans licenses sources
finish
