//! Measures a selective query, one id among many events: `selective [EVENTS [ROUNDS [DIR]]]`.
//!
//! Records EVENTS (1,000,000), half as many, and a quarter into CTF traces in DIR (`/dev/shm`), and writes each trace into a store. Each of ROUNDS
//! (3) looks up one event by its id: in the trace and in the store by our engine, including the notes about missing data; in the same files by
//! DuckDB; and by `babeltrace2 TRACE | grep`. The candidates take turns, and the shortest time of the rounds counts. DuckDB's time is that of the
//! query alone, without the start of Python; our times exclude the start of a process as well. Prints milliseconds, the ratio of each to the time of
//! the trace, and the growth of each time with twice and four times the data.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session};
use tracepoint_query::{Engine, EngineOptions};
use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Store, ingest};

tracepoint::define_trace! {
    provider = "selective";

    /// A request of a service.
    request(id: u64, path: &str, nanos: u64, status: u16) {
        id: u64 = id,
        path: str = path,
        nanos: u64 = nanos,
        status: u16 = status,
    }
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const PATHS: [&str; 5] = ["/", "/login", "/cart", "/search", "/static/style.css"];
const NAMES: [&str; 4] = ["trace", "store", "DuckDB", "babeltrace2, grep"];

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let rounds: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let directory = arguments.next().map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let directory = tempfile::tempdir_in(directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("| events | {} |\n|---|---|---|---|---|", NAMES.join(" | "));
    let mut times = Vec::new();
    for count in [events / 4, events / 2, events] {
        let (trace, store) =
            (directory.path().join(format!("trace{count}")), directory.path().join(format!("store{count}")));
        record(count, &trace)?;
        ingest(&Store::create(&store)?, &Trace::open(&trace)?, IngestOptions::default(), &mut |_, _| {})?;
        let mut best = [Duration::MAX; 4];
        for round in 0..rounds {
            let id = (count / 3 + u64::from(round)) % count.max(1);
            let found = [
                timed(|| runtime.block_on(ask(&trace, id)))?,
                timed(|| runtime.block_on(ask(&store, id)))?,
                by_duckdb(&store, id)?,
                timed(|| by_babeltrace(&trace, id))?,
            ];
            best.iter_mut().zip(found).for_each(|(best, found)| *best = found.min(*best));
        }
        let cells = best.map(|time| format!("{:.1} ms ({:.2})", ms(time), ms(time) / ms(best[0])));
        println!("| {count} | {} |", cells.join(" | "));
        times.push(best);
    }
    for (index, name) in NAMES.iter().enumerate() {
        let growth = times.iter().map(|best| format!("{:.2}", ms(best[index]) / ms(times[0][index])));
        println!("{name}: {} with 1, 2 and 4 times the data", growth.collect::<Vec<_>>().join(", "));
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Runs `find`, which must find one event, and returns the time it took.
fn timed(find: impl FnOnce() -> Outcome<usize>) -> Outcome<Duration> {
    let began = Instant::now();
    match find()? {
        1 => Ok(began.elapsed()),
        found => Err(format!("{found} events are found, instead of 1").into()),
    }
}

fn record(events: u64, trace: &Path) -> Outcome {
    let channel = Channel::wait(4 << 20, Duration::from_secs(10));
    let session = Session::builder("selective").events("selective:*").channel(channel);
    let session = session.sink(CtfSink::create(trace)?).in_memory().start()?;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                let mut random = thread + 1;
                for id in (thread..events).step_by(2) {
                    // xorshift64
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let path = PATHS[(random % 5) as usize];
                    tracepoint::trace!(request(id, path, 1000 + random % 100_000, 200 + (random % 5) as u16));
                }
            });
        }
    });
    session.stop()?;
    Ok(())
}

async fn ask(path: &Path, id: u64) -> Outcome<usize> {
    let engine = Engine::open_any(path, EngineOptions::default()).await?;
    let sql = format!("SELECT ts, path, nanos FROM \"selective:request\" WHERE id = {id}");
    let mut answer = engine.query(&sql).await?;
    let mut rows = 0;
    while let Some(batch) = answer.next().await? {
        rows += batch.num_rows();
    }
    match engine.missing(&answer).await?.notes.first() {
        Some(note) => Err(note.clone().into()),
        None => Ok(rows),
    }
}

fn by_duckdb(store: &Path, id: u64) -> Outcome<Duration> {
    const SCRIPT: &str = "
import sys, time, duckdb
began = time.perf_counter()
files = sys.argv[1] + '/day=*/host=*/session=*/event=selective%3Arequest/*.parquet'
rows = duckdb.connect().execute(f\"SELECT epoch_ns(ts), path, nanos FROM read_parquet('{files}') WHERE id = {sys.argv[2]}\").fetchall()
print(len(rows), time.perf_counter() - began)
";
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/duckdb");
    if !packages.join("duckdb").is_dir() {
        return Err("DuckDB from PyPI is not installed: run scripts/setup.sh".into());
    }
    let mut command = Command::new("python3");
    let output = command.args(["-c", SCRIPT]).arg(store).arg(id.to_string()).env("PYTHONPATH", packages).output()?;
    let text = String::from_utf8(output.stdout)?;
    match text.trim().split_once(' ') {
        Some(("1", seconds)) => Ok(Duration::from_secs_f64(seconds.parse()?)),
        _ => Err(format!("DuckDB finds {text:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn by_babeltrace(trace: &Path, id: u64) -> Outcome<usize> {
    let reader = Command::new("babeltrace2").arg(trace).stdout(Stdio::piped()).spawn();
    let mut reader = reader.map_err(|error| format!("babeltrace2 does not run: {error}; run scripts/setup.sh"))?;
    let lines = reader.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let found = Command::new("grep").args(["-c", &format!(" id = {id},")]).stdin(lines).output()?;
    if !reader.wait()?.success() {
        return Err("babeltrace2 has failed".into());
    }
    Ok(String::from_utf8(found.stdout)?.trim().parse()?)
}
