//! Traces recorded by the tests.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session};

tracepoint::define_trace! {
    provider = "shop";

    /// A request was answered.
    answered(id: u64, path: &str, nanos: u32, status: u16) {
        id: u64 = id,
        path: str = path,
        nanos: u32 = nanos,
        status: u16 = status,
    }

    /// Something else.
    tick(n: i64) { n: i64 = n }
}

/// Serialises recordings: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Records requests, and a tick after each tenth, into a ring of `ring` bytes. Each thousandth request is larger than a packet of a small ring.
pub(crate) fn record(trace: &Path, ring: usize, requests: u64) {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    // By name: the package of the other tests has events of this provider, too.
    let session = Session::builder("shop").events("shop:answered").events("shop:tick").channel(Channel::discard(ring));
    let session = session.sink(CtfSink::create(trace).expect("a trace")).in_memory().start().expect("a session");
    let large = "x".repeat(64 << 10);
    for id in 0..requests {
        let path =
            if id % 1000 == 999 && ring <= large.len() { &large } else { ["/", "/cart", "/login"][(id % 3) as usize] };
        tracepoint::trace!(answered(id, path, (id * 7919 % 10_000) as u32, 200 + (id % 2) as u16));
        if id % 10 == 0 {
            tracepoint::trace!(tick(id.cast_signed()));
        }
    }
    session.stop().expect("it ends");
}
