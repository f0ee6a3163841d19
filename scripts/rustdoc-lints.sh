#!/usr/bin/env bash
# The rustdoc of doc tests, which lints the documentation as well; a warning is an error. For RUSTDOC, beside `cargo test --doc`: `cargo doc`
# would compile all dependencies once more, without code.
set -euo pipefail

if [[ " $* " == *" --test "* ]]; then
    pages=$(mktemp -d)
    trap 'rm -rf "$pages"' EXIT
    lint=()
    for argument; do
        case $argument in
            --test | --no-run) ;;
            # These have a value, which is the next argument or behind a `=`.
            --test-run-directory | --test-args | --test-runtool) skip=yes ;;
            --test-run-directory=* | --test-args=* | --test-runtool=*) ;;
            *) [ -n "${skip-}" ] || lint+=("$argument"); skip= ;;
        esac
    done
    rustdoc "${lint[@]}" --out-dir "$pages" -D warnings
fi
rustdoc "$@"
