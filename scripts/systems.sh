#!/usr/bin/env bash
# Checks what builds on systems other than Linux on x86-64, with the oldest Rust that Cargo.toml declares, and prints it as a table. What is for
# Windows also runs, under wine: tracectl prints of a trace from Linux what it prints on Linux, and a session writes a trace that Linux reads.
#
#   scripts/systems.sh             all targets
#   scripts/systems.sh TARGET…     these
#
# wine and the linker are packages of Debian, which debian-packages.sh fetches (300 MB, once).
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1-}" in -*) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-pc-windows-gnu x86_64-unknown-freebsd aarch64-linux-android riscv64gc-unknown-linux-gnu \
    wasm32-unknown-unknown

programs=$(scripts/declared-rust.sh "$@")
status=0
row() { printf '%-30s %-40s %s\n' "$@"; } # target, what, result
# Programs of the host are those of scripts/msrv.sh.
declared() {
    PATH=$programs:$PATH CARGO_TARGET_DIR=$PWD/target/msrv CARGO_PROFILE_DEV_DEBUG=0 RUSTFLAGS="-D warnings" cargo "$@"
}
check() { # target, what, arguments of cargo
    local target=$1 what=$2 result=checked
    shift 2
    declared check -q --locked --target "$target" "$@" || { result=FAILED; status=1; }
    row "$target" "$what" "$result"
}

# Builds tracectl and a program with a session for Windows, and runs them.
run_on_windows() {
    local target=x86_64-pc-windows-gnu linux tools windows verb
    linux=$(scripts/programs.sh) || return
    tools=$(realpath "$(scripts/debian-packages.sh windows \
        gcc-mingw-w64-x86-64-win32 gcc-mingw-w64-x86-64-win32-runtime binutils-mingw-w64-x86-64 mingw-w64-x86-64-dev mingw-w64-common \
        wine64 libwine libunwind8 liblzma5 libz-mingw-w64)") || return
    # Debian's scripts would make these.
    ln -sf wineserver64 "$tools/usr/lib/wine/wineserver"
    ln -sf "$tools/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$tools/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/"
    local linker=$tools/usr/bin/x86_64-w64-mingw32-gcc-win32
    windows=$PWD/target/msrv/$target/debug
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=$linker
    PATH=$tools/usr/bin:$PATH declared build -q --locked --target $target -p tracectl || return
    PATH=$tools/usr/bin:$PATH declared build -q --locked --target $target -p tracepoint --features session --lib --example threads || return
    row $target "sessions in code" built
    row $target "tracectl, with the verbs that read" built
    # The library with the random numbers of Rust's standard library, which wine 8 lacks.
    PATH=$tools/usr/bin:$PATH "$linker" -shared -x c -o "$work/bcryptprimitives.dll" - -ladvapi32 <<'C' || return
__declspec(dllimport) unsigned char SystemFunction036(void *, unsigned long);
__declspec(dllexport) int ProcessPrng(void *bytes, unsigned long long length) { return SystemFunction036(bytes, length); }
C
    cp "$windows/tracectl.exe" "$windows/examples/threads.exe" "$work"
    export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=;winemenubuilder.exe=d"
    wine() { LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu timeout 120 "$tools/usr/lib/wine/wine64" "$@"; }
    server=$tools/usr/lib/wine/wineserver64
    # Fails for programs with 32 bits alone.
    wine wineboot -i >/dev/null 2>&1 || true
    (
        cd "$work" && TRACEPOINT_RUN_DIR=$work/run "$linux/examples/threads" from-linux >/dev/null || exit
        for verb in view "view --utc --date" verify stat "stat --json --by thread" "hist n" "export --csv -"; do
            # shellcheck disable=SC2086 # a verb and its options
            "$linux/tracectl" $verb from-linux >expected || exit
            # shellcheck disable=SC2086
            wine tracectl.exe $verb from-linux >found && cmp expected found || { echo "systems.sh: tracectl.exe $verb" >&2; exit 1; }
        done
        ! wine tracectl.exe record -e '*' 2>refused && grep -q "not on this system" refused
    ) || return
    row $target "tracectl, of a trace from Linux" run
    # Joined by `&&`: the shell does not end at an error in front of `||`.
    (
        cd "$work" && wine threads.exe from-windows >/dev/null && "$linux/tracectl" verify from-windows &&
            [ "$("$linux/tracectl" view from-windows | wc -l)" -eq 100000 ]
    ) >&2 || return
    row $target "a session, its trace read on Linux" run
}

for target in "$@"; do
    check "$target" "declarations and call sites" --manifest-path tests/fixtures/Cargo.toml -p edition2024
    case $target in
    aarch64-apple-darwin)
        check "$target" "sessions in code" -p tracepoint --features session --lib --example threads
        check "$target" "tracectl, with the verbs that read" -p tracectl
        ;;
    x86_64-pc-windows-gnu)
        # In memory, where rings must be.
        work=$(mktemp -d /dev/shm/systems.XXXXXX)
        trap '[ -z "${server-}" ] || "$server" -k 2>/dev/null || true; rm -rf "$work"' EXIT
        run_on_windows || { row "$target" "built and run under wine" FAILED; status=1; }
        ;;
    esac
done
exit $status
