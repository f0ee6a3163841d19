//! Stores of traces that are recorded here, and of generated traces.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session};
use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Store, ingest};

use crate::traces::{EventKind, Field, Random, TraceSpec};

tracepoint::define_trace! {
    provider = "shop";

    /// A request arrived.
    asked(id: u64) { id: u64 = id }

    /// A request was answered.
    answered(id: u64, path: &str, nanos: u32, status: u16) {
        id: u64 = id,
        path: str = path,
        nanos: u32 = nanos,
        status: u16 = status,
    }
}

/// Nanoseconds per day.
pub const DAY_NS: u64 = 86_400_000_000_000;
/// The first day of generated traces: 23 November 2026.
pub const FIRST_DAY_NS: u64 = 1_795_392_000_000_000_000;

/// Serialises recordings: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Writes a trace into a store.
///
/// # Panics
/// If that fails.
pub fn store(store: &Path, trace: &Path, row_group_rows: usize) {
    let mut options = IngestOptions::default();
    options.row_group_rows = row_group_rows;
    let trace = Trace::open(trace).expect("a trace");
    ingest(&Store::create(store).expect("a store"), &trace, options, &mut |_, _| {}).expect("it is written");
}

/// Records requests into a ring of `ring` bytes. Ids repeat after 1000, each 97th request has no answer, and each 101st answer no request. Each
/// thousandth answer is too large for a small ring.
///
/// # Panics
/// If the session cannot be started, or the trace cannot be written.
pub fn record(trace: &Path, session: &str, ring: usize, requests: u64) {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let session = Session::builder(session).events("shop:*").channel(Channel::discard(ring));
    let session = session.sink(CtfSink::create(trace).expect("a trace")).in_memory().start().expect("a session");
    let large = "x".repeat(64 << 10);
    for number in 0..requests {
        let id = number % 1000;
        if number % 101 != 1 {
            tracepoint::trace!(asked(id));
        }
        if number % 97 != 0 {
            let is_too_large = number % 1000 == 999 && ring <= large.len();
            let path = if is_too_large { &large } else { ["/", "/cart", "/login"][(number % 3) as usize] };
            let nanos = (number * 7919 % 10_000) as u32;
            tracepoint::trace!(answered(id, path, nanos, if number % 50 == 0 { 500 } else { 200 }));
        }
    }
    session.stop().expect("it ends");
}

/// Generates a trace of events `disk:read` of one host and day, at most a second apart. Returns the number of events.
pub fn made(trace: &Path, seed: u64, host: &str, day: u64, fields: Vec<(String, Field)>) -> u64 {
    // Make the seed odd: seeds that differ in the lowest bit only give the same numbers.
    let mut random = Random(2 * seed + 1);
    let made = TraceSpec {
        uuid: std::array::from_fn(|_| random.number() as u8),
        host: host.to_owned(),
        session: "disks".to_owned(),
        begin_ns: FIRST_DAY_NS + day * DAY_NS + 3_600_000_000_000,
        step_ns: 1_000_000_000,
        kinds: vec![EventKind { name: "disk:read".to_owned(), fields }],
        streams: 2,
        packets: 4,
        packet_events: 400,
        loses: false,
        contexts: false,
    };
    made.write(trace, &mut random)
}

/// A 32-bit unsigned field.
pub fn integer(name: &str) -> (String, Field) {
    (name.to_owned(), Field::Number("uint32_t", 4))
}

/// A store of recorded requests, some of them lost, and of generated traces of three days and two hosts with two versions of an event.
pub fn shop(place: &Path) -> std::path::PathBuf {
    let target = place.join("store");
    for (session, ring, requests) in [("shop", 16 << 20, 10_000), ("lossy", 64 << 10, 20_000)] {
        let trace = place.join(session);
        record(&trace, session, ring, requests);
        store(&target, &trace, 5000);
    }
    for day in 0..3 {
        for (number, host) in ["web-1", "web 2"].into_iter().enumerate() {
            let trace = place.join(format!("{day} {host}"));
            made(&trace, 2 * day + number as u64, host, day, vec![integer("sector"), integer("bytes")]);
            store(&target, &trace, 100);
        }
    }
    let trace = place.join("other version");
    made(&trace, 77, "web-1", 1, vec![integer("sector"), ("disk".to_owned(), Field::Enum)]);
    store(&target, &trace, 100);
    target
}
