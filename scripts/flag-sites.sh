#!/usr/bin/env bash
# The tests of tracepoints, probes and rings with sites that load a flag, on a platform whose sites are patched otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/flag-sites.sh" >&2; exit 2; }
# The builds of fixtures choose their features themselves.
cargo test -q -p tracepoint --features flag-sites --test integration -- --skip linkage:: --skip usdt:: --skip disassembly:: --skip fixtures:: \
    --skip off:: --skip failpoints:: --skip call_stack::
