#!/usr/bin/env bash
# What CI runs behind scripts/test.sh: tests with programs that are large, builds with other flags, kills, models, fuzzing, the workspace in
# query/. Each step runs alone as well, and says what it needs.
#
#   scripts/ci.sh            all steps
#   scripts/ci.sh STEP …     these steps
#   scripts/ci.sh --list     the steps, and the programs that they need
#   scripts/ci.sh --long     all steps, with larger numbers, and the campaigns: a million probe changes, ten thousand kills, threads and
#                            processes, a thousand snapshots, two thousand programs, every cell of the matrix, ten thousand bad networks,
#                            mutated models, half an hour of processes and recorders that are killed, a brief comparison with other tracers,
#                            ten minutes of fuzzing for each decoder, queries by several machines, a kernel for aarch64: some hours
#
# What this machine cannot run fails, unless TRACEPOINT_ALLOW_SKIP is set; the table then counts it.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }

long=
case "${1-}" in
    -h | --help) usage; exit ;;
    --list) shift; no_more "$@"; mode=list ;;
    --long)
        long=--long
        shift
        steps "$@"
        export TRACEPOINT_ROUNDS=500000 TRACEPOINT_THREADS=10000 TRACEPOINT_PROCESSES=10000 TRACEPOINT_SNAPSHOTS=1000
        export TRACEPOINT_CROWD=1200 TRACEPOINT_FLEET=1000 TRACEPOINT_SESSIONS=2000
        export TRACEPOINT_PROGRAMS=2000 DATATRACE_KILLS=5000 TRACEPOINT_UDP_SEEDS=10000 TRACEPOINT_NETWORKS=100 TRACEPOINT_CHAINS=50
        export TRACEPOINT_SELECTIVE=100000000
        ;;
    -*) usage >&2; exit 2 ;;
    *) steps "$@" ;;
esac

own=${CARGO_TARGET_DIR:-target}
step --disk 2 setup scripts/setup.sh --ci
if [ -z "$long" ]; then
    step --disk 8 tests linted scripts/tests.sh --ci
else
    # Those of scripts/test.sh, too: they have campaigns among them.
    step --disk 8 tests linted scripts/tests.sh --all
fi
step --disk 2 --builds target/msrv msrv scripts/msrv.sh
step --disk 2 new-program scripts/new-program.sh
step --disk 3 --needs jq --builds "$own/packages" packages scripts/packages.sh
step --disk 2 flag-sites scripts/flag-sites.sh
step --disk 2 --builds target/portable portable scripts/portable.sh
step --disk 6 --builds "$own/arm64" --builds target/tools/debian/arm64 arm64 scripts/arm64.sh ${long}
step --long --disk 6 --builds "$own/arm64" arm64-kernel scripts/arm64-kernel.sh
step --long --disk 6 --builds "$own/arm64" arm64-budgets scripts/arm64.sh scripts/budgets.sh
step --disk 3 --builds target/tools/debian/windows --builds target/tools/rustup systems scripts/systems.sh
step --disk 3 --builds "$own/fixtures" abort scripts/abort.sh
step --disk 4 --needs valgrind --needs gdb --needs perf --builds target/matrix matrix scripts/matrix.sh ${long}
step --disk 3 kills linted scripts/kills.sh ${long}
step --disk 2 --needs gdb --needs bpftrace --builds target/patching patching scripts/patching.sh ${long}
step --long --disk 3 chaos scripts/chaos.sh --long
step --long --disk 4 soak scripts/soak.sh --long
step --long --disk 3 service scripts/service.sh
step --long --disk 4 --needs valgrind peers scripts/peers.sh --quick --no-counts
step --disk 3 --needs valgrind --builds "$own/release" budgets scripts/budgets.sh
step --disk 3 --needs valgrind --builds "$own/helgrind" helgrind scripts/helgrind.sh
step --disk 2 --builds "$own/loom" models scripts/models.sh ${long}
step --disk 4 --needs g++ --builds fuzz/target fuzz scripts/fuzz.sh ${long}
step --disk 10 --needs java --needs nats-server query scripts/query.sh ${long}
step --needs cargo-deny deny-query cargo deny --manifest-path query/Cargo.toml check bans licenses sources
finish
