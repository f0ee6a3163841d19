#!/usr/bin/env bash
# A probe that panics ends a program that was built with panic=abort, by SIGABRT and with the panic's message on stderr. The same
# program built with panic=unwind survives, and says nothing if it has asked for silence. A flight recorder takes a snapshot before a panic ends the program.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/abort.sh" >&2; exit 2; }
target=${CARGO_TARGET_DIR:-$PWD/target}
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
run_with() { # strategy, program, arguments
    strategy=$1 program=$2
    shift 2
    # With unwinding, the dependencies are those of scripts/new-program.sh, in the same versions. Neither build evicts the other.
    built=$target
    [ "$strategy" = unwind ] || built=$target/fixtures/panic-abort
    cargo build -q --manifest-path tests/fixtures/abort/Cargo.toml --target-dir "$built" --config "profile.dev.panic=\"$strategy\""
    status=0
    # In a shell of its own, whose remark that a program was aborted is no news.
    ("$built/debug/$program" "$@" >"$said/out" 2>"$said/err"; exit $?) 2>/dev/null || status=$?
    grep -qx 'fires' "$said/out" || fail "panic=$strategy: $program did not come to its event"
}

# The snapshot in $said/$1 ends with the last event before the panic.
has_snapshot() { # directory
    grep -q "snapshot of the session flight at the panic: 3 events in $said/$1" "$said/err" || fail "$1: no message"
    babeltrace2 "$said/$1" | tail -n 1 | grep -q 'flight:step: .*{ n = 3 }' || fail "$1: it does not end with the last event"
}

run_with abort abort
# A shell says 128 + n of a program that signal n ended.
[ "$status" -eq $((128 + $(kill -l ABRT))) ] || fail "panic=abort: status $status, not that of SIGABRT"
! grep -q 'survived' "$said/out" || fail "panic=abort: the program went on after the panic"
grep -q 'the probe panics' "$said/err" || fail "panic=abort: the panic's message was not heard"
echo "panic=abort: ended by SIGABRT, and the panic was heard"

run_with unwind abort
[ "$status" -eq 0 ] || fail "panic=unwind: status $status, not 0"
grep -qx 'survived' "$said/out" || fail "panic=unwind: the program did not go on"
grep -q 'the probe panics' "$said/err" || fail "panic=unwind: the program's panic hook was not called"
run_with unwind abort silent
grep -qx 'survived' "$said/out" || fail "panic=unwind, silent: the program did not go on"
[ ! -s "$said/err" ] || fail "panic=unwind, silent: something was said on stderr"
echo "panic=unwind: survived, and silently if asked"

aborted=$((128 + $(kill -l ABRT)))
for place in thread probe; do
    run_with abort flight "$said/abort-$place" "$place"
    [ "$status" -eq "$aborted" ] || fail "panic=abort, $place: status $status, not that of SIGABRT"
    has_snapshot "abort-$place"
done
run_with unwind flight "$said/unwind-thread" thread
[ "$status" -eq 0 ] || fail "panic=unwind: status $status, not 0"
has_snapshot unwind-thread
run_with unwind flight "$said/unwind-probe" probe
[ "$status" -eq 0 ] && [ ! -e "$said/unwind-probe" ] || fail "panic=unwind: a panic that a probe survives took a snapshot"
echo "flight recorder: a snapshot before either end, and none for a panic that was caught in a probe"
