#!/usr/bin/env bash
# Builds and tests the core with every item of one platform hidden: what other targets compile.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 0 ] || { echo "usage: scripts/portable.sh" >&2; exit 2; }
RUSTFLAGS="--cfg tp_portable" CARGO_TARGET_DIR=target/portable cargo test -q -p tracepoint \
    --test integration -- event_path:: unregister:: inside_a_probe:: unregister_self:: panic:: threads::
