#!/usr/bin/env bash
# Builds the fuzz targets with stable rustc and runs each over its corpus.
#
#   scripts/fuzz.sh [--long] [SECONDS] [TARGET...]
#
# As many targets as there are processors run at a time, each for 3 seconds, over the same inputs each time, as far as it gets; with --long, for 10 minutes, over others
# each time. The exit status is not 0 if one crashes, hangs or takes too much memory. What a run finds stays in a temporary directory,
# whose name is told; the tree is left as it is.
set -euo pipefail

seconds=3
seed=1
# A short run is over before better code has paid for its compilation; and what decodes nothing (a command line, sessions, terminals) is a third of it.
opt_level=1
plain=(tracectl tracepoint-controller clap_builder clap_complete clap_mangen comfy-table crossterm indicatif inferno jiff ratatui-core ratatui-widgets)
targets=
for argument; do
    case $argument in
        --long) seconds=600 seed=0 opt_level=3 plain=() ;;
        *[!0-9]*) targets="$targets $argument" ;;
        *) seconds=$argument ;;
    esac
done
: "${targets:=metadata packet stream account ring recover remote dt dttrace romfile session udp_server udp_client udp_session filter notify_message relay net_stream live_wire collector sender statistic kernel usdt nats_message verbs}"

fuzz=$(cd "$(dirname "$0")/../fuzz" && pwd)
triple=x86_64-unknown-linux-gnu
build=${CARGO_TARGET_DIR:-$fuzz/target}
found=$(mktemp -d "${TMPDIR:-/tmp}/fuzz.XXXXXX")

# The flags that cargo-fuzz passes, as far as stable rustc takes them: coverage counters, and the table of their places.
# With an explicit --target they apply to the targets alone, not to build scripts.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Ccodegen-units=1 --cfg fuzzing"
options=()
for package in "${plain[@]}"; do
    options+=(--config "profile.release.package.$package.opt-level=0")
done
CARGO_PROFILE_RELEASE_OPT_LEVEL=$opt_level RUSTFLAGS=$flags cargo build --release "${options[@]}" --manifest-path "$fuzz/Cargo.toml" --target "$triple" --target-dir "$build"

# Runs a target and says how it ended; a file of its name is left if it failed.
fuzz_one() { # target
    local target=$1 input
    mkdir -p "$found/$target"
    # The first directory receives what is new; the second is only read.
    "$build/$triple/release/$target" -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
        -print_final_stats=1 -close_fd_mask=1 -artifact_prefix="$found/$target-" "$found/$target" "$fuzz/corpus/$target" \
        2>"$found/$target.log" || touch "$found/$target.failed"
    {
        echo "== $target, $seconds s; findings in $found/$target"
        tail -n 8 "$found/$target.log"
        # What is needed to do it again elsewhere, where only this output is kept.
        for input in "$found/$target"-*; do
            [ -f "$input" ] || continue
            grep -a -A 3 "panicked at" "$found/$target.log" | cut -c 1-2000 || true
            echo "$(basename "$input"), packed:"
            gzip -9 <"$input" | base64
        done
    } >"$found/$target.report"
    cat "$found/$target.report"
}

running=0
for target in $targets; do
    if [ "$running" -ge "$(nproc)" ]; then
        wait -n
        running=$((running - 1))
    fi
    fuzz_one "$target" &
    running=$((running + 1))
done
wait

failed=
for target in $targets; do
    [ ! -e "$found/$target.failed" ] || failed="$failed $target"
done
if [ -n "$failed" ]; then
    echo "failed:$failed; logs and inputs are in $found" >&2
    exit 1
fi
