#!/usr/bin/env bash
# Switches sites as fast as possible while threads execute them and check every register and flag (tests/fixtures/patching), by each way of
# switching, on all processors and on one, beside forks, signals, loaded libraries, evicted code, uprobes and breakpoints. One line for each
# cell: what was executed and switched, and beside what. A protocol that is broken on purpose has to be found.
#
#   scripts/patching.sh           a minute, of which the build takes a part
#   scripts/patching.sh --long    an hour
#
# TRACEPOINT_SEED chooses the values of the registers. The exit status is not 0 if a cell fails.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
    "") seconds=4 ;;
    --long) seconds=500 ;;
    *) echo "usage: scripts/patching.sh [--long]" >&2; exit 2 ;;
esac
die() { echo "patching.sh: $*" >&2; exit 1; }
[ "$(uname -sm)" = "Linux x86_64" ] || die "the passes are written for x86-64 Linux"
for tool in bpftrace gdb; do
    command -v "$tool" >/dev/null || die "$tool is missing: run scripts/setup.sh --ci"
done

# The processors differ in what they promise: the figures are those of one.
echo "processor: $(sed -n 's/^model name[^:]*: //p; s/^cpu family[^:]*:/family/p; s/^model[ \t]*:/model/p' /proc/cpuinfo | head -3 | tr '\n' ' '), $(nproc) online"

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/patching} CARGO_PROFILE_RELEASE_DEBUG=0
cargo build -q --locked --release --manifest-path tests/fixtures/Cargo.toml -p patching
program=$CARGO_TARGET_DIR/release/patching
options=(--seconds "$seconds" --seed "${TRACEPOINT_SEED:-$RANDOM}")

failed=()
cell() { # name, command…
    local name=$1 said
    shift
    if said=$("$@" 2>&1) && grep -q " sites, [1-9][0-9]* rounds of .* passes" <<<"$said"; then
        printf '%-40s %s\n' "$name" "$(grep ' sites, ' <<<"$said")"
    else
        failed+=("$name")
        printf '%-40s FAILED: %s\n' "$name" "$said"
    fi
}

cell "/proc/self/mem" "$program" "${options[@]}"
cell "/proc/self/mem, one processor" "$program" "${options[@]}" --one-processor
cell "mprotect" "$program" "${options[@]}" --no-files
cell "mprotect, one processor" "$program" "${options[@]}" --no-files --one-processor
cell "no neighbours" "$program" "${options[@]}" --quiet-neighbours
cell "TRACEPOINT_SITES=indirect" env TRACEPOINT_SITES=indirect "$program" "${options[@]}"

probes="uprobe:$program:patching_pass_l3 { @line = count(); } uprobe:$program:patching_pass_p1 { @page = count(); }"
cell "uprobes" bpftrace -e "$probes" -c "$program ${options[*]}"
cell "breakpoints of gdb" gdb -nx -q -batch -ex 'set pagination off' -ex 'set debuginfod enabled off' \
    -ex 'break *patching_pass_p2' -ex 'ignore 1 1000000000' -ex 'break *patching_pass_l5' -ex 'ignore 2 1000000000' \
    -ex "run ${options[*]} --quiet-neighbours" "$program"

# Broken on purpose: the checks find it.
if said=$("$program" "${options[@]}" --broken two-bytes); then
    failed+=("broken protocol")
    printf '%-40s FAILED: it was not found: %s\n' "broken: an intermediate instruction" "$said"
else
    printf '%-40s found: %s\n' "broken: an intermediate instruction" "$(grep WRONG <<<"$said" || echo "it ended by a signal")"
fi
# An experiment, which cannot fail: where stores reach the fetch of other processors at once, there is nothing to find.
printf '%-40s %s\n' "broken: processors not synchronized" "$("$program" "${options[@]}" --broken no-sync | tr '\n' ' ' || true)"

[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
