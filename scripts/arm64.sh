#!/usr/bin/env bash
# Builds for aarch64 Linux and runs there, translated by qemu: the tests of ring, core, probes and tracepoint; with pages of 4 and of 64 KiB
# those of patched sites, kills with recovery, and sessions whose traces `tracectl` reads on this machine.
#
#   scripts/arm64.sh               all of this; the last lines are what runtime::platform() prints there
#   scripts/arm64.sh --long        `tracectl` runs there as well, and prints the same of traces of both machines. It takes minutes to build, and the
#                                  crates of it that have code for a processor are built without the option, too
#   scripts/arm64.sh COMMAND…      this command instead: cargo builds for aarch64, and programs for aarch64 run. For example
#                                  scripts/arm64.sh cargo run -p tracepoint --features session --example threads /tmp/trace
#                                  scripts/arm64.sh scripts/budgets.sh
#
# The compiler, the linker, the C library and qemu are packages of Debian, which debian-packages.sh fetches (260 MB, once). The kernel runs
# programs for aarch64 only inside of a user namespace of this script, so that nothing of the system changes.
# QEMU_PAGESIZE=65536 sets the size of a page; TRACEPOINT_ROUNDS how often the stress test switches its sites on and off.
set -euo pipefail
cd "$(dirname "$0")/.."
case "$*" in --long) ;; -*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; [[ $1 == -h || $1 == --help ]]; exit ;; esac

fail() { echo "arm64.sh: $*" >&2; exit 1; }
[ "$(uname -sm)" = "Linux x86_64" ] || fail "this cross compiler runs on x86-64 Linux: on aarch64 run scripts/tests.sh"

packages=(
    rustc-web libstd-rust-web-1.96 libllvm22 # the compiler
    libstd-rust-web-dev # the standard library of this machine, for build scripts and procedural macros
    libstd-rust-web-dev:arm64
    gcc-12-aarch64-linux-gnu cpp-12-aarch64-linux-gnu binutils-aarch64-linux-gnu # the linker, objdump; C in dependencies
    libgcc-12-dev-arm64-cross libgcc-s1-arm64-cross libc6-arm64-cross libc6-dev-arm64-cross linux-libc-dev-arm64-cross
    qemu-user-static
)
tools=$(realpath "$(scripts/debian-packages.sh arm64 "${packages[@]}")")
wrap() { # name, program and arguments
    [ ! -e "$tools/bin/$1" ] || return 0
    mkdir -p "$tools/bin"
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$tools/usr/lib/x86_64-linux-gnu" "$tools/usr/bin/$2" >"$tools/bin/$1"
    chmod +x "$tools/bin/$1"
}
wrap rustc rustc
wrap aarch64-linux-gnu-gcc "aarch64-linux-gnu-gcc-12 --sysroot=$tools"
wrap aarch64-linux-gnu-objdump aarch64-linux-gnu-objdump

# Registers qemu for programs for aarch64, in a user namespace, and runs this script there.
if [ -z "${ARM64_REGISTERED-}" ]; then
    if [[ "$*" == "" || "$*" == --long ]]; then
        ARM64_HOST=$(scripts/programs.sh)
        export ARM64_HOST
    fi
    export ARM64_REGISTERED=yes
    exec unshare --user --map-root-user --mount scripts/arm64.sh "$@"
fi
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
    printf %s ":aarch64:M::$magic:$mask:$tools/usr/bin/qemu-aarch64-static:F" >/proc/sys/fs/binfmt_misc/register ||
    fail "programs for aarch64 cannot be registered in a user namespace: this needs Linux 6.7 with CONFIG_BINFMT_MISC"

export PATH=$PWD/target/tools/bin:$tools/bin:$PATH
export QEMU_LD_PREFIX=$tools/usr/aarch64-linux-gnu
export RUSTC=$tools/bin/rustc CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$tools/bin/aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu=$tools/bin/aarch64-linux-gnu-gcc
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/arm64 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
# Not the flags of the machine's own builds.
unset RUSTFLAGS RUSTC_WRAPPER CARGO_BUILD_RUSTC_WRAPPER
[[ "$*" == "" || "$*" == --long ]] || exec "$@"

command -v cargo-nextest >/dev/null || fail "cargo-nextest is missing: run scripts/setup.sh"
# In memory, where rings must be.
work=$(mktemp -d /dev/shm/arm64.XXXXXX)
trap 'rm -rf "$work"' EXIT
# The standard library's backtraces read the lists of mappings, which qemu forges: with pages of 64 KiB they crash.
export RUST_BACKTRACE=0

# Without what qemu does not have: restrictions (seccomp, other users), a list of mappings with their private pages, memory that children lack.
# Nor forks while another thread is being created: in one of some 400, the child never leaves qemu's own `fork`, where it waits for a lock of
# qemu's with all signals blocked.
possible='not test(/^(hardened|mappings|fork_first)::|^fork::a_child_does_not_touch_memory_that_it_does_not_have$/)'
# Seventeen sites, each on and off: 3,400 switches, one for each ten of the long campaign.
rounds=${TRACEPOINT_ROUNDS:-100}
unset TRACEPOINT_ROUNDS
cargo nextest run -p tracepoint-ring -p tracepoint-core -p tracepoint-probes -p tracepoint --lib --test integration --test sites -E "$possible"
QEMU_PAGESIZE=65536 cargo nextest run -p tracepoint --test sites -E "$possible"

# Sites that four threads execute while they are switched.
TRACEPOINT_ROUNDS=$rounds cargo nextest run --profile all -p tracepoint --test sites -E 'test(/^stress::/)'

# The controller has system calls by processor.
cargo build -q -p tracepoint -p tracepoint-controller --features tracepoint/session --lib --example threads
programs=$CARGO_TARGET_DIR/$CARGO_BUILD_TARGET/debug
for page in 4096 65536; do
    export QEMU_PAGESIZE=$page TRACEPOINT_RUN_DIR=$work/run-$page
    "$programs/examples/threads" "$work/trace-$page" | tee "$work/platform-$page"
    "$programs/examples/threads" "$work/killed-$page" kill || true
    "$ARM64_HOST/tracectl" recover "$TRACEPOINT_RUN_DIR" -o "$work/recovered-$page"
    for trace in "$work/trace-$page" "$work/recovered-$page"; do
        "$ARM64_HOST/tracectl" verify "$trace"
        events=$("$ARM64_HOST/tracectl" view "$trace" | wc -l)
        [ "$events" -eq 100000 ] || fail "with pages of $page bytes $events of 100,000 events are in $trace"
    done
done

grep -H '' "$work"/platform-* | sed "s|^$work/platform-\([0-9]*\):|pages of \1 bytes: |"
[ "$*" ] || exit 0

# Each of the two machines reads what the other has recorded.
cargo build -q -p tracectl
"$ARM64_HOST/examples/threads" "$work/trace-host" >"$work/host"
for trace in "$work"/trace-{host,65536}; do
    "$programs/tracectl" verify "$trace"
    for verb in view 'export --csv -'; do
        # shellcheck disable=SC2086 # words
        cmp <("$ARM64_HOST/tracectl" $verb "$trace") <("$programs/tracectl" $verb "$trace") ||
            fail "tracectl $verb prints other lines on aarch64 than on x86-64 for $trace"
    done
done
