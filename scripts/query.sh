#!/usr/bin/env bash
# Lints, builds and tests the workspace in query/: the store of Parquet files, and the program that writes it.
#
#   scripts/query.sh [--long] [ARGUMENT...]
#
# Without options one test is left out, and listed by ci.sh as skipped: it hangs in about half of the runs, because Ballista 55 does not start a
# stage again that was about to start when an executor died (docs/query.md, Failures).
# In the profile of development, without debug information. Arguments go to cargo-nextest. DuckDB and Spark read what is written, moto serves S3, and
# nats-server carries traces; scripts/setup.sh --ci installs them. TRACEPOINT_CHAINS says how often a process of the whole chain is killed.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/target/tools/bin:$PATH

hangs=failures::a_query_survives_the_death_of_an_executor
case "${1-}" in
    --long) shift ;;
    "")
        set -- -E "not test(=$hangs)"
        echo "query.sh: SKIPPED $hangs, which hangs in about half of the runs: --long has it" >&2
        [ -z "${TRACEPOINT_SKIPPED-}" ] || echo "SKIPPED $hangs: hangs in about half of the runs" >>"$TRACEPOINT_SKIPPED"
        ;;
esac

# Symbols are a third of each of twenty programs of some 300 MB.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 CARGO_PROFILE_DEV_STRIP=symbols
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/clippy-rustc.sh
cargo build -q --locked -p tracectl --features nats
cd query
cargo build -q --locked --workspace --all-targets
cargo nextest run --locked --workspace --no-fail-fast --status-level slow "$@"
RUSTDOC=$PWD/../scripts/rustdoc-lints.sh cargo test -q --locked --workspace --doc
"${CARGO_TARGET_DIR:-target}/debug/examples/selective" "${TRACEPOINT_SELECTIVE:-1000000}" 1
