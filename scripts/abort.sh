#!/usr/bin/env bash
# A probe that panics ends a program that was built with panic=abort, by SIGABRT and with the panic's message on stderr. The same
# program built with panic=unwind survives, and says nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target/fixtures}
# The abort is expected: no core file of it.
ulimit -c 0

said=$(mktemp -d "${TMPDIR:-/tmp}/abort.XXXXXX")
trap 'rm -rf "$said"' EXIT

fail() {
    echo "abort.sh: $*" >&2
    echo "-- stdout" >&2
    cat "$said/out" >&2
    echo "-- stderr" >&2
    cat "$said/err" >&2
    exit 1
}

# Builds the program with a panic strategy and runs it; what it says is in $said, how it ended in $status.
run_with() { # strategy
    # A directory for each strategy, so that neither build evicts the other.
    cargo build -q --manifest-path tests/fixtures/abort/Cargo.toml --target-dir "$target/panic-$1" \
        --config "profile.dev.panic=\"$1\""
    status=0
    # In a shell of its own, whose remark that a program was aborted is no news.
    ("$target/panic-$1/debug/abort" >"$said/out" 2>"$said/err"; exit $?) 2>/dev/null || status=$?
    grep -qx 'fires' "$said/out" || fail "panic=$1: the program did not come to its event"
}

run_with abort
# A shell says 128 + n of a program that signal n ended.
[ "$status" -eq $((128 + $(kill -l ABRT))) ] || fail "panic=abort: status $status, not that of SIGABRT"
! grep -q 'survived' "$said/out" || fail "panic=abort: the program went on after the panic"
grep -q 'the probe panics' "$said/err" || fail "panic=abort: the panic's message was not heard"
echo "panic=abort: ended by SIGABRT, and the panic was heard"

run_with unwind
[ "$status" -eq 0 ] || fail "panic=unwind: status $status, not 0"
grep -qx 'survived' "$said/out" || fail "panic=unwind: the program did not go on"
[ ! -s "$said/err" ] || fail "panic=unwind: something was said on stderr"
echo "panic=unwind: survived, silently"
