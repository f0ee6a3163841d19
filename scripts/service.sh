#!/usr/bin/env bash
# Records a web service with a database pool whose libraries know only `tracing` (examples/service): shows that the layer alone gives its
# requests, its queries and what its HTTP implementation does, and that nothing is lost. With --picture, also writes docs/report.png, the page of
# `tracectl report` about that trace. A workspace of its own: the first build compiles SQLite and takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

case "$*" in
    '' | --picture) ;;
    *) echo "usage: scripts/service.sh [--picture]" >&2; exit 2 ;;
esac
requests=200

cargo build -q -p tracectl
(cd examples/service && cargo build -q --locked)
tracectl=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/tracectl
service=$(realpath "${CARGO_TARGET_DIR:-examples/service/target}")/debug/tracepoint-service-example
docs=$PWD/docs

place=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$place"' EXIT
cd "$place"
mkdir -m 700 run
export TRACEPOINT_RUN_DIR=$place/run
"$tracectl" record -e 'tracing:*' -o trace --fail-on-loss -- "$service" $requests >/dev/null
"$tracectl" verify --failures trace

count() { # events whose names match
    "$tracectl" stat --json -e "$1" trace | python3 -c 'import json, sys; print(json.load(sys.stdin)["count"])'
}
at_least() { # what, events, how many
    local found
    found=$(count "$2")
    echo "$1: $found events"
    [ "$found" -ge "$3" ] || { echo "service.sh: expected at least $3 of $2" >&2; exit 1; }
}
at_least 'requests (tower-http)' 'tracing:tower_http::*request_end' $requests
at_least 'queries (sqlx)' 'tracing:sqlx::query*' $requests
at_least 'frames (h2)' 'tracing:h2::*' $requests

"$tracectl" report trace -o report.html
[ "${1-}" = --picture ] || exit 0
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1000 --virtual-time-budget=5000 \
    --user-data-dir="$place/profile" --screenshot="$place/report.png" "file://$place/report.html#theme=light" 2>/dev/null
mv report.png "$docs/report.png"
