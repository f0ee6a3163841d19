#!/usr/bin/env bash
# Measures every figure that the documents have, and writes it there: docs/costs.md with its chart, the table of docs/filters.md, and
# README.md. Takes some minutes; the quieter the machine, the better the times. Options go to scripts/peers.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --ci >&2
scripts/costs.sh --docs >/dev/null
scripts/peers.sh --docs "$@"
cargo run -q -p tracepoint-book --bin figures
