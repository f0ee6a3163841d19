#!/usr/bin/env bash
# Builds and tests the core with every item of one platform hidden: what other targets compile.
set -euo pipefail
cd "$(dirname "$0")/.."
RUSTFLAGS="--cfg tp_portable" CARGO_TARGET_DIR=target/portable cargo test -q -p tracepoint \
    --test event_path --test unregister --test inside_a_probe --test unregister_oneself --test panic --test threads
