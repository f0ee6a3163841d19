#!/usr/bin/env bash
# Builds programs that check their own sites in the ways that users build programs, and runs them as users run programs: alone,
# under valgrind, gdb and perf, and in several linked objects. One line for each cell.
#
#   scripts/matrix.sh           the cells that differ most, for CI
#   scripts/matrix.sh --long    all
#
# The exit status is not 0 if a cell fails. A kernel may refuse perf: that fails, too, unless TRACEPOINT_ALLOW_SKIP is set.
set -euo pipefail
cd "$(dirname "$0")/.."

long=
case "$*" in
    "") ;;
    --long) long=yes ;;
    *) echo "usage: scripts/matrix.sh [--long]" >&2; exit 2 ;;
esac

die() { echo "matrix.sh: $*" >&2; exit 1; }
triple=x86_64-unknown-linux-gnu
[ "$(uname -sm)" = "Linux x86_64" ] || die "sites are patched on x86-64 Linux only"
for tool in valgrind gdb perf readelf cc; do
    command -v "$tool" >/dev/null || die "$tool is missing: run scripts/setup.sh --ci"
done

target=${CARGO_TARGET_DIR:-$PWD/target/matrix}
# What is given here would be added to what a cell is about.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
for variable in ${!CARGO_PROFILE_@}; do
    unset "$variable"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/matrix.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0
refused=0
failed=()

passes() { # cell, what was said
    passed=$((passed + 1))
    printf '%-44s %s\n' "$1" "$2"
}

fails() { # cell, why; what the last command said is in $work/log
    failed+=("$1")
    printf '%-44s FAILED: %s\n' "$1" "$2"
    tail -n 40 "$work/log" | sed 's/^/    /' >&2
}

# The name of a program in $work/programs, kept for the cells that run it under something.
mkdir "$work/programs"

# Builds packages: `build PACKAGES [--lto fat] … [-C…]`. Options of the release profile are written `name=value`, rustc's flags
# begin with a dash, cargo's other arguments with `--`. A target is named so that flags are the program's alone, and what runs
# while compiling is built once for all cells.
build() {
    local arguments=() flags=() word
    for word; do
        case $word in
            --*) arguments+=("$word") ;;
            -*) flags+=("\"$word\"") ;;
            *=*) arguments+=(--config "profile.release.$word") ;;
            *) arguments+=(-p "$word") ;;
        esac
    done
    if [ ${#flags[@]} -gt 0 ]; then
        local IFS=,
        arguments+=(--config "target.$triple.rustflags=[${flags[*]}]")
    fi
    CARGO_TARGET_DIR=$target cargo build --quiet --release --target "$triple" --manifest-path tests/fixtures/Cargo.toml \
        "${arguments[@]}" >"$work/log" 2>&1
}
built=$target/$triple/release

# A program says `ok`, and how many sites it has, as the last of its output.
runs() { # cell, command
    local cell=$1 status=0
    shift
    timeout 120 "$@" >"$work/log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        fails "$cell" "status $status"
    elif grep -q '^ok ' "$work/log"; then
        passes "$cell" "$(grep '^ok ' "$work/log")"
    else
        fails "$cell" "it does not say ok"
    fi
}

# Builds `switching` and runs it.
cell() { # name, what to build it with
    local name=$1
    shift
    if ! build switching "$@"; then
        fails "$name" "it does not build"
        return
    fi
    cp "$built/switching" "$work/programs/$name"
    runs "$name" "$work/programs/$name"
}

# A cell with a property that shows in the file.
shows() { # cell, extended regex, command
    local cell=$1 pattern=$2
    shift 2
    [ -e "$work/programs/$cell" ] || return 0 # it was not built, and that was said
    "$@" "$work/programs/$cell" >"$work/log" 2>&1
    grep -Eq "$pattern" "$work/log" || fails "$cell" "it is not what it is called: no $pattern in $*"
}

gnu_ld=-Clinker-features=-lld

cell "O0" opt-level=0 'debug-assertions=true'
cell "O3, release"
[ -z "$long" ] || cell "O1" opt-level=1
[ -z "$long" ] || cell "O2" opt-level=2
[ -z "$long" ] || cell "Os" 'opt-level="s"'
[ -z "$long" ] || cell "Oz" 'opt-level="z"'
[ -z "$long" ] || cell "thin LTO" 'lto="thin"'
cell "fat LTO, one unit" 'lto="fat"' codegen-units=1
shows "fat LTO, one unit" 'LLD' readelf -p .comment
cell "fat LTO, one unit, GNU ld" 'lto="fat"' codegen-units=1 "$gnu_ld"
[ -z "$long" ] || cell "O0, GNU ld" opt-level=0 "$gnu_ld"
[ -z "$long" ] || cell "release, GNU ld" "$gnu_ld"
for cell in "$work/programs/"*"GNU ld"; do
    [ -e "$cell" ] || continue
    ! readelf -p .comment "$cell" | grep -q LLD || fails "${cell##*/}" "it was linked by LLD"
done
# The linker compiles: it keeps what it would drop of several copies, and every object file registers its linked object.
cell "linker-plugin LTO" -Clinker-plugin-lto
[ -z "$long" ] || cell "linker-plugin fat LTO" 'lto="fat"' codegen-units=1 -Clinker-plugin-lto
# Functions may be folded that differ in the key of their site only, if nothing tells the linker of it.
cell "identical code folding" -Clink-arg=-Wl,--icf=all
[ -z "$long" ] || cell "fat LTO, identical code folding" 'lto="fat"' codegen-units=1 -Clink-arg=-Wl,--icf=all
[ -z "$long" ] || cell "link-dead-code" -Clink-dead-code
# The linker discards sections that only their start and stop symbols refer to.
[ -z "$long" ] || cell "start-stop-gc" -Clink-arg=-Wl,-z,start-stop-gc
[ -z "$long" ] || cell "stripped" 'strip="symbols"'
[ -z "$long" ] || cell "incremental" incremental=true
cell "panic=abort" 'panic="abort"'
[ -z "$long" ] || cell "fat LTO, panic=abort" 'lto="fat"' codegen-units=1 'panic="abort"'
cell "static-pie" -Ctarget-feature=+crt-static
shows "static-pie" 'DYN' readelf -h
[ -z "$long" ] || cell "static-pie, GNU ld" -Ctarget-feature=+crt-static "$gnu_ld"
[ -z "$long" ] || cell "relocation-model=static" -Crelocation-model=static
[ -z "$long" ] || shows "relocation-model=static" 'EXEC' readelf -h
[ -z "$long" ] || cell "relocation-model=static, GNU ld" -Crelocation-model=static "$gnu_ld"
[ -z "$long" ] || cell "static" -Crelocation-model=static -Ctarget-feature=+crt-static
# One segment with everything, readable, writable and executable.
cell "static, text and data in one" -Crelocation-model=static -Ctarget-feature=+crt-static -Clink-arg=-Wl,-N
shows "static, text and data in one" 'LOAD.* RWE ' readelf -lW
[ -z "$long" ] || cell "code-model=large" -Ccode-model=large
[ -z "$long" ] || cell "symbol mangling v0" -Csymbol-mangling-version=v0
[ -z "$long" ] || cell "coverage" -Cinstrument-coverage
[ -z "$long" ] || cell "flag-sites" --features=switching/flag-sites
# Where pages are made writable, they are left as they were.
for cell in "O3, release" "static, text and data in one"; do
    [ ! -e "$work/programs/$cell" ] || runs "$cell, no files" "$work/programs/$cell" --no-files
done
# Sites that become jumps through words of data before the code is executed.
for cell in "O3, release" "linker-plugin LTO" "static-pie" "static, text and data in one"; do
    [ ! -e "$work/programs/$cell" ] || runs "$cell, indirect" env TRACEPOINT_SITES=indirect "$work/programs/$cell"
done
# Counters of the cell with coverage, which nobody wants.
export LLVM_PROFILE_FILE=/dev/null

# Under the tools, as users call them: no option tells them that code changes.
release="$work/programs/O3, release"
if [ -e "$release" ]; then
    runs "valgrind memcheck" valgrind --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite "$release"
    [ -z "$long" ] || runs "valgrind memcheck, O0" valgrind --error-exitcode=99 "$work/programs/O0"
    [ -z "$long" ] || runs "valgrind callgrind" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$release"
fi

# Finds, in a program that is about to start, the site of `switching_own` ($site) and its cold path ($cold).
cat >"$work/find" <<'GDB'
set pagination off
set confirm off
set debuginfod enabled off
set language c
starti
set $at = (char *) &__start_tracepoint_sites
set $end = (char *) &__stop_tracepoint_sites
set $own = (char *) &switching_own
set $site = (char *) 0
while $at < $end
  set $this = $at + *(int *) $at
  if $this >= $own && ($site == 0 || $this < $site)
    set $site = $this
    set $cold = $at + 4 + *(int *) ($at + 4)
  end
  set $at = $at + 16
end
GDB

debugged() { # cell, how often the breakpoint is hit at least, its place or nothing, the program and its arguments
    local cell=$1 hits=$2 place=$3
    shift 3
    {
        cat "$work/find"
        if [ -n "$place" ]; then
            echo "break $place"
            echo "ignore \$bpnum 1000000000"
        fi
        echo "continue"
        echo "info breakpoints"
    } >"$work/commands"
    timeout 120 gdb -nx -q -batch -x "$work/commands" --args "$@" >"$work/log" 2>&1 || true
    local seen
    seen=$(sed -n 's/.*breakpoint already hit \([0-9]*\) time.*/\1/p' "$work/log")
    if ! grep -q 'exited normally' "$work/log"; then
        fails "$cell" "it does not exit normally"
    elif ! grep -q '^ok ' "$work/log"; then
        fails "$cell" "it does not say ok"
    elif [ "${seen:-0}" -lt "$hits" ]; then
        fails "$cell" "the breakpoint was hit ${seen:-0} times, not $hits"
    else
        passes "$cell" "$(grep '^ok ' "$work/log")${place:+, stopped $seen times}"
    fi
}

# Ten times on, a hundred rounds each.
if [ -e "$release" ]; then
    debugged "gdb" 0 "" "$release"
    debugged "gdb, breakpoint in the cold path" 1000 '*$cold' "$release"
    debugged "gdb, breakpoint at a function with a site" 20 'switching_own' "$release"
    debugged "gdb, breakpoint on a site" 2000 '*$site' "$release" --watched
    [ -z "$long" ] || debugged "gdb, breakpoint in the cold path, O0" 1000 '*$cold' "$work/programs/O0"
fi

# Whether the kernel counts at all is asked with a program that has no sites.
if perf record -q -e cpu-clock -o "$work/perf.data" true >"$work/log" 2>&1; then
    [ ! -e "$release" ] || runs "perf record" perf record -q -e cpu-clock -o "$work/perf.data" "$release"
elif grep -Eqi 'permission|not permitted|not supported|ENOSYS|not implemented' "$work/log"; then
    if [ -n "${TRACEPOINT_ALLOW_SKIP-}" ]; then
        refused=$((refused + 1))
        printf '%-44s %s\n' "perf record" "SKIPPED: refused by this kernel"
        [ -z "${TRACEPOINT_SKIPPED-}" ] || echo "SKIPPED perf record: refused by this kernel" >>"$TRACEPOINT_SKIPPED"
    else
        fails "perf record" "refused by this kernel: sysctl -w kernel.perf_event_paranoid=1, or set TRACEPOINT_ALLOW_SKIP=1"
    fi
else
    fails "perf record" "perf does not run"
fi

# Several linked objects. A Rust dylib is found beside the program, and libstd where rustc has it.
objects() { # name, what to build with
    local name=$1
    shift
    if build objects-host objects-module "$@"; then
        runs "cdylib, opened and closed$name" "$built/objects-host" "$built/libobjects_module.so"
    else
        fails "cdylib, opened and closed$name" "it does not build"
    fi
    if build objects-app objects-late -Cprefer-dynamic -Crpath "$@"; then
        runs "dylibs, one opened late$name" "$built/objects-app" "$built/libobjects_late.so"
    else
        fails "dylibs, one opened late$name" "it does not build"
    fi
}

# The module as a static library in a program that C's compiler links.
in_c() {
    local cell="static library in a C program"
    if CARGO_TARGET_DIR=$target cargo rustc --quiet --release --target "$triple" --manifest-path tests/fixtures/Cargo.toml \
        -p objects-module --crate-type staticlib >"$work/log" 2>&1 &&
        cc tests/fixtures/objects-module/program.c "$built/libobjects_module.a" -Wl,--gc-sections -lpthread -ldl -lm -lgcc_s \
            -o "$work/programs/c" >>"$work/log" 2>&1; then
        runs "$cell" "$work/programs/c"
    else
        fails "$cell" "it does not build"
    fi
}

objects ""
export TRACEPOINT_SITES=indirect
objects ", indirect"
unset TRACEPOINT_SITES
[ -z "$long" ] || objects ", O0" opt-level=0
[ -z "$long" ] || objects ", GNU ld" "$gnu_ld"
[ -z "$long" ] || in_c

echo "$passed passed, ${#failed[@]} failed, $refused refused by this kernel"
if [ ${#failed[@]} -gt 0 ]; then
    printf 'matrix.sh: failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
