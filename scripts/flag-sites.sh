#!/usr/bin/env bash
# Builds with other features: the sinks of a session by themselves, without a warning; and the tests of tracepoints, probes and rings with sites
# that load a flag, on a platform whose sites are patched otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/flag-sites.sh" >&2; exit 2; }
# What the features leave out must not leave unused code, or need something that is left out. The whole workspace has all of them.
for features in session control dt stream udp; do
    cargo clippy -q -p tracepoint --features "$features" -- -D warnings
done
# The builds of fixtures choose their features themselves.
cargo test -q -p tracepoint --features flag-sites --test integration -- --skip linkage:: --skip usdt:: --skip disassembly:: --skip fixtures:: \
    --skip off:: --skip failpoints:: --skip call_stack::
