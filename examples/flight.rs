//! A flight recorder in code: the newest events of each thread stay in memory, and a panic writes them to a directory before anything else
//! happens. There is no daemon and no second process, and no file until then.
//!
//! `cargo run --example flight [DIR]`: four workers serve requests; one of them hits a bug.

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tracepoint::{Channel, Session};

tracepoint::define_trace! {
    provider = "worker";

    /// A worker starts a request.
    #[level(Info)]
    pub begun(request: u64, bytes: u64) { request: u64 = request, bytes: u64 = bytes }

    /// The worker has served the request.
    #[level(Info)]
    pub served(request: u64) { request: u64 = request }
}

/// The request that the program cannot serve.
const BAD: u64 = 50_000;

fn serve(request: u64) {
    let bytes = request * 7919 % 4096;
    tracepoint::trace!(begun(request, bytes));
    assert!(request != BAD, "request {request} cannot be served");
    tracepoint::trace!(served(request));
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).map_or_else(|| std::env::temp_dir().join("flight"), PathBuf::from);

    // 1 MiB for each thread, and no sink: older events are overwritten.
    let flight = Session::builder("flight")
        .events("worker:*")
        .channel(Channel::overwrite(1 << 20))
        .in_memory()
        .on_panic(directory.join("panic"))
        .start()?;

    let next = AtomicU64::new(0);
    let panicked = thread::scope(|scope| {
        let work = || {
            while next.load(Ordering::Relaxed) < 2 * BAD {
                serve(next.fetch_add(1, Ordering::Relaxed));
            }
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(thread::ScopedJoinHandle::join).filter(Result::is_err).count()
    });

    // The session continues after the panic: a snapshot can be taken at any time.
    let now = flight.snapshot(directory.join("end"))?;
    println!("{panicked} of 4 workers panicked; {} events in {}", now.events, now.path.display());
    println!("{}", flight.stop()?);
    Ok(())
}
