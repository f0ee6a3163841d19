#!/usr/bin/env bash
# Installs the Debian packages that the tests need: programs that we did not write, which read our traces and judge our code. With
# --peers, also those that benches/peers compares with. Safe to run again. Needs root, or sudo.
set -euo pipefail

packages=(
    babeltrace2 # reads CTF traces
    valgrind    # callgrind counts instructions, helgrind looks for races
    binutils    # GNU ld, readelf, objdump
    gdb         # runs programs whose sites change under its breakpoints
    linux-perf  # the same under a profiler
    strace      # sees system calls
    g++         # libFuzzer's runtime
)
case "${1-}" in
    "") ;;
    --peers)
        packages+=(
            lttng-tools      # the session daemon of LTTng-UST
            liblttng-ust-dev # its headers
        )
        ;;
    *) echo "usage: scripts/setup.sh [--peers]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup.sh: not root, and there is no sudo: install ${missing[*]} by hand" >&2; exit 1; }
    as_root=(sudo)
fi
command -v apt-get >/dev/null || { echo "setup.sh: no apt-get: install ${missing[*]} by hand" >&2; exit 1; }
echo "setup.sh: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
