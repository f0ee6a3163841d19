//! Measures a query on a cluster of one and two executors, and embedded, with 1, 2 and 4 times the data. All processes run on this machine, so the
//! executors share its processors; each runs one task at a time.
//!
//! `cargo bench --manifest-path query/Cargo.toml -p tracectl-query --bench cluster`, and `-- REQUESTS` for another number of requests than a million.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tracepoint_query_tests::processes::Cluster;
use tracepoint_query_tests::stores;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tracectl-query");
/// Reads three columns of all answers, groups the rows, and sorts the groups.
const SQL: &str = "SELECT path, id % 1000 AS part, count(*) AS requests, avg(nanos) AS mean, max(nanos) AS longest, stddev(nanos) AS deviation
    FROM \"shop:answered\" GROUP BY 1, 2 ORDER BY mean DESC";
/// Requests per trace. Each request is two events.
const PART: u64 = 250_000;
/// Number of runs. The shortest one counts.
const RUNS: usize = 3;

fn shortest(mut command: impl FnMut() -> Command) -> Duration {
    let mut run = || {
        let begin = Instant::now();
        let status = command().stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the program runs");
        assert!(status.success(), "the query fails");
        begin.elapsed()
    };
    (0..RUNS).map(|_| run()).min().unwrap_or_default()
}

fn main() {
    let requests: u64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{processors} processors; seconds of the shortest of {RUNS} runs");
    println!("{:>10} {:>10} {:>12} {:>12}", "requests", "embedded", "1 executor", "2 executors");
    for times in [1, 2, 4] {
        let place = tempfile::tempdir().expect("a directory");
        let store = place.path().join("store");
        for number in 0..times * requests.div_ceil(PART) {
            let trace = place.path().join(format!("trace {number}"));
            stores::record(&trace, "shop", 16 << 20, PART);
            stores::store(&store, &trace, 100_000);
        }
        let embedded = shortest(|| {
            let mut command = Command::new(PROGRAM);
            command.args(["--json", SQL]).arg(&store);
            command
        });
        let clustered = [1, 2].map(|executors| {
            let place = place.path().join(format!("{executors} executors"));
            std::fs::create_dir(&place).expect("a directory");
            let cluster = Cluster::start(|| Command::new(PROGRAM), &place, executors, 1);
            shortest(|| cluster.query(SQL, &store))
        });
        let [one, two] = clustered.map(|time| time.as_secs_f64());
        println!("{:>10} {:>10.2} {one:>12.2} {two:>12.2}", requests * times, embedded.as_secs_f64());
    }
}
