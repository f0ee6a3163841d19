# Runs named steps one after the other and prints a table of them: for scripts that begin with `. scripts/steps.sh`.
#
#   steps NAME…                                      the steps that are wanted; without a name, all
#   step [--long] [--needs PROGRAM]… [--disk GIB] [--builds DIR]… NAME COMMAND…
#                                                    with --long: only where $long is set; DIR is what the step alone builds into
#   linted COMMAND…                                  runs a command whose cargo lints the members of the workspace while it compiles them. What it has
#                                                    built serves other commands that are run so, and no others.
#   finish                                           prints the last lines of each step that failed, and the table; its status is 0 if every
#                                                    step passed
#
# A step that fails does not keep the others from running. One whose programs are missing, or for which the disk has no room, is not run,
# and the table says what is missing and how to get it; that is no success either. Where the disk has no room, what the earlier steps of
# this run have built for themselves is removed first.

export PATH=$PWD/target/tools/bin:$PATH
TRACEPOINT_SKIPPED=$(mktemp "${TMPDIR:-/tmp}/skipped.XXXXXX")
export TRACEPOINT_SKIPPED
# What the steps that failed have printed.
outputs=$(mktemp -d "${TMPDIR:-/tmp}/steps.XXXXXX")
trap 'rm -rf "$TRACEPOINT_SKIPPED" "$outputs"' EXIT
[ ! -t 2 ] || export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}

wanted=()
known=()
long_only=()
rows=()
passed=0
failed=0
not_run=0
# `list` prints the steps in place of running them.
mode=run
# Directories that the earlier steps alone have built into.
built=()

steps() {
    local word
    for word in "$@"; do
        case $word in
            -*) echo "options stand before the names of steps, and \`$word\` is none that goes with them" >&2; usage >&2; exit 2 ;;
        esac
    done
    wanted=("$@")
}

# For options that choose the steps themselves: no words follow them.
no_more() {
    [ $# -eq 0 ] || { echo "names of steps do not go with this option: $*" >&2; usage >&2; exit 2; }
}

# The directory into which cargo builds, or the nearest one above it that exists.
build_directory() {
    local directory=${CARGO_TARGET_DIR:-.}
    while [ ! -d "$directory" ]; do
        directory=$(dirname "$directory")
    done
    printf '%s\n' "$directory"
}

# The free space in KiB where cargo builds.
free_space() {
    df --output=avail -k "$(build_directory)" | tail -n 1 | tr -dc 0-9
}

# Removes what earlier steps have built for themselves, unless there are so many GiB.
make_room() {
    if [ "$(free_space)" -lt $(($1 << 20)) ] && [ ${#built[@]} -gt 0 ]; then
        echo "removed, because the disk has no room: ${built[*]}" >&2
        rm -rf "${built[@]}"
        built=()
    fi
}

linted() {
    RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy-rustc.sh "$@"
}

# Prints what keeps a step from running, if anything does.
obstacle() { # GiB, program…
    local disk=$1 program missing=()
    shift
    for program in "$@"; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        echo "${missing[*]} missing: scripts/setup.sh --ci installs it"
        return
    fi
    local free
    free=$(free_space)
    [ "$free" -ge $((disk << 20)) ] || echo "needs $disk GiB of disk, and $((free >> 20)) are free in $(realpath "$(build_directory)"): remove target/ of other checkouts, or set CARGO_TARGET_DIR"
}

row() { # name, wall, CPU, disk, result
    rows+=("$(printf '%-12s %9s %9s %9s  %s' "$@")")
}

step() {
    local needs=() disk=1 builds=() only_long=
    while :; do
        case $1 in
            --long) only_long=yes; shift ;;
            --needs) needs+=("$2"); shift 2 ;;
            --disk) disk=$2; shift 2 ;;
            --builds) builds+=("$2"); shift 2 ;;
            *) break ;;
        esac
    done
    local name=$1
    shift
    if [ "$mode" = list ]; then
        printf '%-12s %s%s%s\n' "$name" "$*" "${needs[0]+  (needs ${needs[*]})}" "${only_long:+  (with --long alone)}"
        return
    fi
    if [ "$only_long" ] && [ -z "${long-}" ]; then
        long_only+=("$name")
        return
    fi
    known+=("$name")
    [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || return 0
    printf '\n== %s: %s\n' "$name" "$*" >&2
    local reason free
    make_room "$disk"
    reason=$(obstacle "$disk" ${needs[0]+"${needs[@]}"})
    if [ -n "$reason" ]; then
        echo "NOT RUN: $reason" >&2
        not_run=$((not_run + 1))
        row "$name" - - - "not run: $reason"
        return
    fi
    free=$(free_space)
    built+=(${builds[0]+"${builds[@]}"})
    local times status=0 seconds user kernel result=passed
    exec 3> >(exec tee "$outputs/$name" >&2)
    times=$(TIMEFORMAT='%R %U %S'; { time "$@" 1>&3 2>&3; } 2>&1) || status=$?
    exec 3>&-
    read -r seconds user kernel <<<"${times##*$'\n'}"
    if [ $status -eq 0 ]; then
        passed=$((passed + 1))
        rm -f "$outputs/$name"
    else
        failed=$((failed + 1))
        result="FAILED (exit code $status)"
    fi
    row "$name" "$seconds s" "$(awk "BEGIN { printf \"%.1f s\", $user + $kernel }")" "$(((free - $(free_space)) >> 10)) MiB" "$result"
}

finish() {
    [ "$mode" = run ] || return 0
    local name unknown=0
    for name in ${wanted[0]+"${wanted[@]}"}; do
        [[ " ${known[*]} " == *" $name "* ]] && continue
        unknown=1
        if [[ " ${long_only[*]-} " == *" $name "* ]]; then
            echo "NOT RUN: \`$name\` is a step with --long alone: $0 --long $name" >&2
        else
            echo "there is no step \`$name\`; the steps are: ${known[*]}" >&2
        fi
    done
    {
        for name in $(ls -tr "$outputs"); do
            printf '\n== %s failed; its last lines:\n' "$name"
            tail -n 60 "$outputs/$name"
        done
        printf '\n%-12s %9s %9s %9s\n' step time CPU disk
        [ ${#rows[@]} -eq 0 ] || printf '%s\n' "${rows[@]}"
        if [ -s "$TRACEPOINT_SKIPPED" ]; then
            sort "$TRACEPOINT_SKIPPED"
            echo "$(wc -l <"$TRACEPOINT_SKIPPED") tests skipped"
        fi
        printf '%d passed, %d failed, %d not run, in %d min %d s\n' $passed $failed $not_run $((SECONDS / 60)) $((SECONDS % 60))
    } >&2
    [ $failed -eq 0 ] && [ $not_run -eq 0 ] && [ $unknown -eq 0 ]
}
