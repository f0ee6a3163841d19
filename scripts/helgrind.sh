#!/usr/bin/env bash
# Runs the stress test of register and unregister under helgrind, and demands that it reports nothing but what helgrind.supp
# explains. Then it weakens the orderings on which the safety of that rests, one at a time, and demands that helgrind finds the
# race: a checker that is content with anything shows nothing.
#
# TRACEPOINT_ROUNDS sets how many registrations each changing thread makes in the first run.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/helgrind.sh" >&2; exit 2; }
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}/helgrind

fail() { echo "helgrind.sh: $*" >&2; exit 1; }
[ "$(uname -sm)" = "Linux x86_64" ] || fail "the annotations are written for x86-64 Linux"
command -v valgrind >/dev/null || fail "valgrind is not installed: run scripts/setup.sh --ci"

# Functions that were inlined are named by their debug information.
export CARGO_PROFILE_DEV_DEBUG=full

# All runs work on a copy that holds the core alone. It needs none of the other tests' dependencies, and what is built from a
# weakened copy is never taken for the real thing, because each copy is newer than what was built before.
copy=$(mktemp -d "${TMPDIR:-/tmp}/helgrind.XXXXXX")
trap 'rm -rf "$copy"' EXIT
cp Cargo.lock scripts/helgrind.supp "$copy/"
sed -e 's/^members = .*/members = ["core", "ring", "tracepoint-macros"]/' Cargo.toml > "$copy/Cargo.toml"
# Path dependencies on the crates that are left out.
sed -i -E '/path = "/{/"(core|ring|tracepoint-macros)"/!d}' "$copy/Cargo.toml"
cp -r tracepoint-macros "$copy/"
mkdir -p "$copy/core/tests"
cp core/build.rs "$copy/core/"
mkdir "$copy/ring"
cp ring/build.rs "$copy/ring/"
sed -e 's/\btracepoint::/tracepoint_core::/g' -e '/own_process!/d' tracepoint/tests/integration/unregister.rs > "$copy/core/tests/unregister.rs"
perl -0pe 's/^\[[^\]\n]*dev-dependencies[^\n]*\n(?:(?!\[).*\n)*//mg' core/Cargo.toml > "$copy/core/Cargo.toml"
perl -0pe 's/^\[[^\]\n]*dev-dependencies[^\n]*\n(?:(?!\[).*\n)*//mg' ring/Cargo.toml > "$copy/ring/Cargo.toml"
cd "$copy"

# A freed list must not be read by anybody who is not ordered before the one who frees it, so a free counts as a write.
options=(
    --tool=helgrind --fair-sched=try --free-is-write=yes --read-inline-info=yes --num-callers=40
    --suppressions=../helgrind.supp "--log-file=%q{HELGRIND_LOG}"
)

# Runs the test under helgrind with so many rounds, in the copy as it is now; the reports go to the log.
run() { # rounds, log
    # With debug information, whatever the caller has set: suppressions name inlined functions of the standard library.
    CARGO_PROFILE_DEV_DEBUG=2 CARGO_PROFILE_TEST_DEBUG=2 TRACEPOINT_ROUNDS=$1 HELGRIND_LOG=$2 RUSTFLAGS="--cfg tp_helgrind" CARGO_TARGET_DIR=$target \
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind ${options[*]}" \
        cargo test -q -p tracepoint-core --test unregister -- --test-threads=1 >"$2.out" 2>&1 ||
        { cat "$2.out" >&2; fail "the test does not run"; }
    grep -q 'ERROR SUMMARY' "$2" || fail "helgrind did not finish"
}

fresh_sources() {
    rm -rf core/src ring/src
    cp -r "$root/core/src" core/
    cp -r "$root/ring/src" ring/
}

rounds=${TRACEPOINT_ROUNDS:-500}
fresh_sources
run "$rounds" "$copy/log"
if ! grep -q 'ERROR SUMMARY: 0 errors' "$copy/log"; then
    cat "$copy/log" >&2
    fail "helgrind reports something that helgrind.supp does not explain"
fi
echo "$rounds rounds under helgrind: $(sed -n 's/.*\(ERROR SUMMARY: .*\)/\1/p' "$copy/log")"

# The reports must be about what the orderings protect: lists and probes, read by a site, freed or written by a change.
weakened() { # name, file, extended regex, replacement
    fresh_sources
    perl -0pi -e "s/$3/$4/" "ring/src/$2"
    ! cmp -s "ring/src/$2" "$root/ring/src/$2" || fail "the mutation $1 no longer matches $2"
    run 200 "$copy/log"
    grep -q 'ProbeList' "$copy/log" ||
        fail "helgrind finds no race on lists or probes without $1"
    echo "without $1 helgrind finds the race: $(grep -c 'Possible data race' "$copy/log") places"
}

weakened "G3 (release in exit)" grace.rs 'inside.wrapping_add\(1\), Ordering::Release\)' 'inside.wrapping_add(1), Ordering::Relaxed)'
weakened "G3 (acquire of the waiter)" grace.rs 'load\(Ordering::Acquire\)' 'load(Ordering::Relaxed)'
weakened "P1 (release of the list)" rcu_pointer.rs 'Ordering::AcqRel' 'Ordering::Acquire'
weakened "P1 (acquire of the list)" rcu_pointer.rs 'load\(Ordering::Acquire\)' 'load(Ordering::Relaxed)'
