#!/usr/bin/env bash
# Records processes that start, end and are killed at random, for a long time, onto a disk that stalls at random, by a named session
# with chunks and by a `tracectl record` that is killed again and again.
#
#   scripts/soak.sh          30 processes for a minute, 3 killed recorders
#   scripts/soak.sh --long   200 processes for 30 minutes, 10 killed recorders
#
# It passes if every account balances (`tracectl verify`; first `tracectl recover` where a process or the recorder was killed), if
# memory and descriptors of processes and recorder and the size of the run directory do not grow, and if nothing is left at the end: no
# event is on, no session, no file of rings. It prints a table of samples; docs/production.md explains it. What fails is kept in a
# directory that it names.
#
# The disk is an ext4 image on a loop device, stalled by fsfreeze: needs root. TRACEPOINT_SOAK='PROCESSES SECONDS KILLS' sets other sizes.
# TRACEPOINT_SEED repeats the random decisions of a run, though not their times.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
    "") size="30 60 3" ;;
    --long) size="200 1800 10" ;;
    -h | --help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; exit ;;
    *) echo "usage: scripts/soak.sh [--long]" >&2; exit 2 ;;
esac
read -r processes seconds kills <<<"${TRACEPOINT_SOAK-$size}"
seed=${TRACEPOINT_SEED-$((SRANDOM % 32768))}
RANDOM=$seed
echo "soak.sh: TRACEPOINT_SEED=$seed, $processes processes for $seconds s, $kills killed recorders" >&2

missing=
[ "$(id -u)" -eq 0 ] || missing="root, for a loop device and fsfreeze"
for tool in mkfs.ext4 mount fsfreeze flock; do
    command -v $tool >/dev/null || missing=$tool
done
if [ -n "$missing" ]; then
    echo "soak.sh: cannot run: needs $missing; TRACEPOINT_ALLOW_SKIP=1 skips it" >&2
    [ -n "${TRACEPOINT_ALLOW_SKIP-}" ] || exit 1
    [ -z "${TRACEPOINT_SKIPPED-}" ] || echo "SKIPPED soak: needs $missing" >>"$TRACEPOINT_SKIPPED"
    exit 0
fi

cargo build -q -p tracectl -p tracepoint-examples --bin tracectl --example connections
built=${CARGO_TARGET_DIR:-$PWD/target}/debug
tracectl=$built/tracectl
work=$(mktemp -d "${TMPDIR:-/tmp}/soak.XXXXXX")
run=$(mktemp -d /dev/shm/soak.XXXXXX)
export TRACEPOINT_RUN_DIR=$run
disk=$work/disk
# The shell tells of each process that was killed.
exec 4>&2 2>"$work/log"
mkdir "$disk" "$work/failed" "$work/recovered"

failures=0
fail() {
    failures=$((failures + 1))
    echo "soak.sh: after $((SECONDS - begin)) s: $*" >&4
}

# Processes by their slots, and with the time at which they started: numbers are used again. The second form is also the name of the
# directory of their rings.
pids=() names=() ended=() recorder= stalls=
declare -A killed
clean_up() {
    trap - EXIT
    [ -z "$stalls" ] || kill "$stalls" 2>/dev/null || true
    fsfreeze -u "$disk" 2>/dev/null || true
    [ -z "${recorder}${pids[*]}" ] || kill -9 $recorder "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    umount "$disk" 2>/dev/null || true
    if [ $failures -eq 0 ] && [ "${finished-}" ]; then
        rm -rf "$work" "$run"
    else
        rm -f "$work/image"
        echo "soak.sh: failed, with TRACEPOINT_SEED=$seed; what failed is in $work, and the run directory is $run" >&4
    fi
}
begin=$SECONDS
trap clean_up EXIT
trap 'exit 130' INT TERM

truncate -s 8G "$work/image"
mkfs.ext4 -q "$work/image"
mount -o loop,noatime "$work/image" "$disk"

# A number from A up to B, in $drawn, and a thousandth of it in $time: a command substitution would not advance the sequence.
draw() {
    drawn=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1)))
    printf -v time '%d.%03d' $((drawn / 1000)) $((drawn % 1000))
}
clock() { now=$((${EPOCHREALTIME/[.,]/} / 1000)); }

# Stalls the disk for 50 ms to 2 s, and now and then for 8 s, until this script ends.
stall() {
    RANDOM=$((seed + 1))
    trap 'fsfreeze -u "$disk" 2>/dev/null; exit' TERM
    while kill -0 $$ 2>/dev/null; do
        draw 500 6000
        sleep "$time"
        draw 50 2000
        [ $((RANDOM % 12)) -gt 0 ] || time=8
        fsfreeze -f "$disk"
        sleep "$time"
        fsfreeze -u "$disk"
        echo "$time" >>"$work/stalls"
    done
}

: >"$work/stalls"
started=0 verified=0 recovered=0 recorders_killed=0
start_process() { # slot, seconds
    "$built/examples/connections" --serve "$2" >/dev/null 2>>"$work/processes.log" &
    pids[$1]=$!
    local stat
    stat=$(</proc/$!/stat)
    stat=(${stat##*) })
    names[$1]=$!-${stat[19]}
    started=$((started + 1))
}

start_recorder() {
    "$tracectl" record -e 'server:*' --wait --max-size 6G --rotate-every 10s -o "$disk/record-$recorders_killed" \
        >>"$work/recorder.log" 2>&1 &
    recorder=$!
}

# Whether a command of tracectl succeeds; if not, what it says and what it was about are kept.
succeeds() { # path of what it is about, arguments
    local about=$1 kept
    shift
    "$tracectl" "$@" >"$work/said" 2>&1 && return
    kept=$work/failed/$failures-${about##*/}
    cp -r "$about" "$kept" 2>/dev/null || mkdir -p "$kept"
    cp "$work/said" "$kept/said"
    fail "tracectl $*: $(grep -E '^(error|FAILED|note)' "$work/said" | head -n 3)"
    return 1
}

verify_trace() { # path
    ! succeeds "$1" verify --failures "$1" || verified=$((verified + 1))
}

# Recovers the rings of one process, and verifies the result. Without metadata, the process ended before an event was on.
recover_rings() { # path of the rings
    [ -e "$1/metadata" ] || return 0
    local out=$work/recovered/${1##*/}
    if succeeds "$1" recover "$1" -o "$out"; then
        recovered=$((recovered + 1))
        verify_trace "$out"
    fi
    rm -rf "$out"
}

# Checks what the named session has of a process that has ended: its trace, or what its rings give where it could not complete that.
check_ended() { # name
    local rings=$run/sessions/soak/rings/$1 trace=$disk/named/connections-$1
    if [ -d "$rings" ]; then
        recover_rings "$rings"
        # `tracectl clean` removes what a session has left that is over.
        [ ! -e "$run/sessions/soak/session.toml" ] || rm -rf "$rings"
    elif [ -d "$trace" ] && [ -n "$(find "$trace" -name 'channel*' -size +0 -print -quit)" ]; then
        # Without a packet, the process ended before its agent had begun the session: the disk stalled when the trace was made.
        [ -z "${killed[$1]-}" ] || fail "process $1 was killed, and has no rings: $trace"
        verify_trace "$trace"
    fi
    unset "killed[$1]"
    rm -rf "$trace"
}

# Looks for processes that have ended, and starts others in their places.
replace_ended() {
    local slot pid status
    for slot in "${!pids[@]}"; do
        pid=${pids[slot]}
        kill -0 "$pid" 2>/dev/null && continue
        status=0
        wait "$pid" 2>/dev/null || status=$?
        [ $status -eq 0 ] || [ -n "${killed[${names[slot]}]-}" ] || fail "process $pid ended with status $status"
        ended+=("${names[slot]}")
        draw 1000 $((seconds < 300 ? 15000 : 120000))
        start_process "$slot" "$time"
    done
}

# Checks the traces of a recorder that has ended. Where it was killed, its session ends in the processes without it, and their rings
# complete what it had written.
check_recorder() { # its process id, its number
    local trace rings session=$run/sessions/record-$1 whole=$disk/record-$2 deadline=$((SECONDS + 120))
    while [ -e "$session/session.toml" ]; do
        "$tracectl" list >/dev/null 2>&1 || true
        if [ $SECONDS -gt $deadline ]; then
            fail "the session of the killed recorder $1 has not ended after 120 s"
            break
        fi
        sleep 0.2
    done
    # The session is over when all of its processes have been told. One that gets no processor time ends its recording later.
    for rings in "$session"/rings/*; do
        [ ! -d "$rings" ] || flock --shared --timeout 60 "$rings" true || fail "${rings##*/} still records for the killed recorder $1"
    done
    for trace in "$whole"/*; do
        rings=$session/rings/$(grep -oE '[0-9]+-[0-9]+(-[0-9]+)?$' <<<"$trace")
        [ -d "$rings" ] || verify_trace "$trace"
    done
    for rings in "$session"/rings/*; do
        [ ! -d "$rings" ] || recover_rings "$rings"
    done
    succeeds "$session" clean --purge || true
    [ ! -e "$session" ] || fail "the killed recorder $1 has left $session: $(ls "$session")"
    rm -rf "$whole"
}

kill_recorder() {
    kill -9 "$recorder"
    wait "$recorder" 2>/dev/null || true
    local was=$recorder number=$recorders_killed
    recorders_killed=$((recorders_killed + 1))
    start_recorder
    check_recorder "$was" "$number"
}

# The largest resident set in MiB, and the largest number of descriptors, of processes.
largest() { # pids
    local pid rss=0 descriptors=0 kib count
    for pid in "$@"; do
        kib=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null) || true
        count=$(ls "/proc/$pid/fd" 2>/dev/null | wc -l) || true
        [ "${kib:-0}" -le $rss ] || rss=$kib
        [ "$count" -le $descriptors ] || descriptors=$count
    done
    awk -v kib=$rss -v count=$descriptors 'BEGIN { printf "%9.1f %5d", kib / 1024, count }'
}

# Residents are processes that live as long as the soak: the first tenth, two at least.
residents=$((processes / 10 > 2 ? processes / 10 : 2))
sample() {
    local size
    size=$(du -sk "$run" 2>/dev/null | cut -f 1) || true
    printf '%5d %s %s %8.1f %7d %6d %8d %9d %6d\n' $((SECONDS - begin)) "$(largest "${pids[@]:0:residents}")" "$(largest "$recorder")" \
        "$((size / 1024)).$((size % 1024 * 10 / 1024))" $started $recorders_killed $verified $recovered \
        "$(wc -l <"$work/stalls")" | tee -a "$work/samples"
}

# -- the soak ----------------------------------------------------------------------------------------------------------

"$tracectl" create soak -e 'server:*' -o "$disk/named" --rotate-every 5s --max-size 64M --ring-size 64K --wait >/dev/null
# The rings of each process that dies are checked here, and removed: none may be displaced before.
sed -i -e 's/^keep_dead = .*/keep_dead = 100000/' -e "s/^keep_dead_bytes = .*/keep_dead_bytes = $((1 << 40))/" "$run/sessions/soak/session.toml"
[ "$(grep -cE '^keep_dead(_bytes)? = 10+' "$run/sessions/soak/session.toml")" -eq 2 ] || fail "the session's limits are not as written"
"$tracectl" start soak >/dev/null
for ((slot = 0; slot < processes; slot++)); do
    draw 1000 20000
    [ $slot -ge $residents ] || time=$((seconds * 10))
    start_process $slot "$time"
done
start_recorder
stall &
stalls=$!
echo "    s  RSS MiB   fds  recorder   fds  run dir started killed verified recovered stalls"
clock
begin=$SECONDS
end=$((now + seconds * 1000)) next_kill=$now
next_sample=$((now + 1000)) per_sample=$((seconds * 1000 / 40))
per_recorder=$((seconds * 1000 / (kills + 1))) next_recorder=$((now + per_recorder))
samples=0
# Where checking a killed recorder takes long, until there are enough samples.
while clock; [ $now -lt $end ] || [ $samples -lt 12 ]; do
    replace_ended
    if [ $now -ge $next_kill ]; then
        draw $residents "$processes"
        killed[${names[drawn]}]=yes
        kill -9 "${pids[drawn]}" 2>/dev/null || unset "killed[${names[drawn]}]"
        draw 200 3000
        next_kill=$((now + drawn))
    fi
    if [ $now -ge $next_recorder ]; then
        kill_recorder
        next_recorder=$((next_recorder + per_recorder))
    fi
    if [ $now -ge $next_sample ]; then
        sample
        samples=$((samples + 1))
        next_sample=$((now + per_sample))
    fi
    for name in "${ended[@]:0:5}"; do
        check_ended "$name"
    done
    ended=("${ended[@]:5}")
    kill -0 "$recorder" 2>/dev/null || { fail "the recorder ended: $(tail -n 3 "$work/recorder.log")"; break; }
    sleep 0.2
done

# -- the end -----------------------------------------------------------------------------------------------------------

kill "$stalls"
wait "$stalls" 2>/dev/null || true
stalls=
status=0
kill -INT "$recorder" && wait "$recorder" || status=$?
# 7: it is said which processes were killed.
[ $status -eq 0 ] || [ $status -eq 7 ] || fail "the last recorder ended with $status: $(tail -n 3 "$work/recorder.log")"
check_recorder "$recorder" $recorders_killed
recorder=

for name in "${ended[@]}"; do
    check_ended "$name"
done
succeeds "$run" destroy --timeout 30s soak || true
! "$tracectl" list | grep '^  on ' >&4 || fail "events are on although there is no session"
kill -9 "${pids[@]}" 2>/dev/null || true
for slot in "${!pids[@]}"; do
    wait "${pids[slot]}" 2>/dev/null || true
    # One that was killed just before the session ended has left its rings.
    check_ended "${names[slot]}"
done
pids=()
succeeds "$run" clean --purge || true
left=$("$tracectl" list 2>/dev/null; "$tracectl" status 2>/dev/null)
[ -z "$left" ] || fail "list and status still show: $left"
left=$(find "$run" -type f ! -name clock ! -name tsc ! -name '*.lock'; find "$run"/apps "$run"/sessions -mindepth 1)
[ -z "$left" ] || fail "left in the run directory: $left"

# Flat: after a sixth of the time, the largest value of the last third is at most a quarter, and a bit, above that of the first.
awk '{ for (i = 2; i <= 6; i++) value[NR, i] = $i }
    END {
        split("0 2 4 16 16 16", slack)
        split(";resident set;descriptors;resident set of the recorder;descriptors of the recorder;run directory", names, ";")
        from = int(NR / 6) + 1; third = int((NR - from + 1) / 3); grown = third < 2
        if (grown) print "soak.sh: too few samples"
        for (i = 2; i <= 6; i++) {
            first = last = 0
            for (n = from; n < from + third; n++) if (value[n, i] > first) first = value[n, i]
            for (n = NR - third + 1; n <= NR; n++) if (value[n, i] > last) last = value[n, i]
            printf "%s: at most %s in the first third, %s in the last\n", names[i], first, last
            if (last > first * 1.25 + slack[i]) { grown = 1; print "soak.sh: grows: " names[i] }
        }
        exit grown
    }' "$work/samples" || fail "resources grow"
finished=yes
[ $failures -eq 0 ] || exit 1
echo "$started processes, $recorders_killed killed recorders, $(wc -l <"$work/stalls") stalls: $verified traces verified, of which" \
    "$recovered recovered; nothing grows, nothing is left"
