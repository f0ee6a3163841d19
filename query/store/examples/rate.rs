//! Measures how fast events are written into a store, and their size there: `rate [ROUNDS [EVENTS [DIR]]]`.
//!
//! Two threads record events into CTF traces in DIR (`/dev/shm`), without losses: numbers, and numbers with texts, in a loop; and calls with random
//! fields and random pauses. Each round writes each trace into a new store, in this process, with one thread. Prints events per second of processor
//! time, the best of the rounds, and bytes per event: of the store, of the trace, of the trace after `zstd -1`, and of a tenth of such events as OTLP
//! in protobuf. OTLP has events only in spans: each span has a hundred events, and the bytes of the span count.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session};
use tracepoint_export::{Exporter, Otlp};
use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Store, ingest};

tracepoint::define_trace! {
    provider = "rate";

    /// Two 32-bit numbers and a 64-bit one.
    numbers(a: i32, b: i32, c: i64) { a: i32 = a, b: i32 = b, c: i64 = c }

    /// A request of a service.
    request(id: u64, path: &str, nanos: u64, status: u16) {
        id: u64 = id,
        path: str = path,
        nanos: u64 = nanos,
        status: u16 = status,
    }

    /// A call of a service, by one of its users.
    call(id: u64, user: u32, path: &str, nanos: u64, status: u16) {
        id: u64 = id,
        user: u32 = user,
        path: str = path,
        nanos: u64 = nanos,
        status: u16 = status,
    }

    /// The span around events for OTLP.
    span group() {}
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Events per span, for OTLP. Its SDKs keep at most 128.
const GROUP: u64 = 100;

const PATHS: [&str; 5] = ["/", "/login", "/cart", "/search", "/static/style.css"];

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let rounds: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let events: u64 = arguments.next().map_or(Ok(4_000_000), |text| text.parse())?;
    let directory = arguments.next().map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let directory = tempfile::tempdir_in(directory)?;
    println!("| event | million events/s | Parquet | CTF | CTF, `zstd -1` | OTLP |\n|---|---|---|---|---|---|");
    for name in ["numbers", "request", "call"] {
        let trace = directory.path().join(name);
        record(name, events, &trace, false)?;
        let (mut best, mut size) = (f64::INFINITY, 0);
        for round in 0..rounds {
            let store = directory.path().join(format!("store{round}"));
            let began = processor_time();
            let stored =
                ingest(&Store::create(&store)?, &Trace::open(&trace)?, IngestOptions::default(), &mut |_, _| {})?;
            best = best.min(processor_time() - began);
            if stored.events != events || stored.lost_events > 0 {
                return Err(format!("{stored:?} of {events} events").into());
            }
            size = stored.bytes;
            fs::remove_dir_all(store)?;
        }
        let [plain, compressed] = sizes(&trace)?;
        let each = |bytes: u64| bytes as f64 / events as f64;
        let rate = events as f64 / best / 1e6;
        let grouped = directory.path().join(format!("{name}-in-spans"));
        record(name, events / 10, &grouped, true)?;
        let bytes = [size, plain, compressed, otlp(&grouped, events / 10)? * 10];
        let bytes = bytes.map(|bytes| format!("{:.2}", each(bytes)));
        println!("| `{name}` | {rate:.2} | {} |", bytes.join(" | "));
    }
    Ok(())
}

/// Records events, in spans if `grouped`.
fn record(name: &str, events: u64, trace: &Path, grouped: bool) -> Outcome {
    let channel = Channel::wait(4 << 20, Duration::from_secs(10));
    let session = Session::builder("rate").events(format!("rate:{name}").as_str()).channel(channel);
    let session = if grouped { session.events("rate:group_*") } else { session };
    let session = session.sink(CtfSink::create(trace)?).in_memory().start()?;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                let mut random = thread + 1;
                let count = if grouped { GROUP } else { events / 2 };
                for first in (0..events / 2).step_by(count as usize) {
                    let _span = tracepoint::span!(group());
                    let count = count.min(events / 2 - first);
                    if name == "call" {
                        calls(&mut random, count);
                    } else {
                        requests(&mut random, thread, first..first + count);
                    }
                }
            });
        }
    });
    session.stop()?;
    Ok(())
}

/// Fires numbers and requests; a session records one of the two.
fn requests(random: &mut u64, thread: u64, numbers: Range<u64>) {
    for n in numbers {
        next(random);
        tracepoint::trace!(numbers(n as i32, 7, n.cast_signed()));
        let path = PATHS[(*random % 5) as usize];
        tracepoint::trace!(request(2 * n + thread, path, 1000 + *random % 100_000, 200 + (*random % 5) as u16));
    }
}

/// xorshift64.
fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

/// Fires calls of 100,000 users with random ids. Short durations are more frequent than long ones. Up to 4 us pass between two calls.
fn calls(random: &mut u64, count: u64) {
    for _ in 0..count {
        let [id, other] = [next(random), next(random)];
        let nanos = 50_000 + (1 << (other >> 60)) * (other % 1500);
        let status = if other % 64 == 0 { 500 } else { 200 };
        let path = PATHS[(other >> 8) as usize % PATHS.len()];
        tracepoint::trace!(call(id, (other >> 16) as u32 % 100_000, path, nanos, status));
        let begin = Instant::now();
        let pause = Duration::from_nanos(next(random) % 4000);
        while begin.elapsed() < pause {}
    }
}

/// The size of a trace's streams in bytes, plain and compressed.
fn sizes(trace: &Path) -> Outcome<[u64; 2]> {
    let mut sizes = [0, 0];
    for file in tracepoint_reader::stream_files(trace)? {
        let bytes = fs::read(file)?;
        sizes[0] += bytes.len() as u64;
        sizes[1] += zstd::bulk::compress(&bytes, 1)?.len() as u64;
    }
    Ok(sizes)
}

/// The size of a trace as OTLP in bytes. The trace must have `events` events.
fn otlp(trace: &Path, events: u64) -> Outcome<u64> {
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(Otlp::protobuf(&mut bytes));
    for item in Trace::open(trace)?.items() {
        exporter.item(&item)?;
    }
    let (_, summary) = exporter.finish()?;
    if summary.outside > 0 || summary.lost_events > 0 || summary.events < events {
        return Err(format!("{summary:?} of {events} events").into());
    }
    Ok(bytes.len() as u64)
}

/// The processor time of this process, in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
