//! A server whose recording may begin long after its clients connected. A state dump records their names.
//!
//! `cargo run --example connections`. Or with `--serve`, optionally followed by a number of seconds, and, in another terminal,
//! `tracectl record -e 'server:*' -o /tmp/late`.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracepoint::session::{Agent, Session, state_dump};
use tracepoint::sinks::CtfSink;

tracepoint::define_trace! {
    provider = "server";

    /// A client connected.
    #[level(Info)]
    pub connected(id: u64, peer: &str) { id: u64 = id, peer: str = peer }

    /// A client that connected before the recording began.
    #[level(Info)]
    pub connection(id: u64, peer: &str, requests: u64) { id: u64 = id, peer: str = peer, requests: u64 = requests }

    /// A client sent a request. The event does not repeat its name.
    #[level(Debug)]
    pub request(id: u64, n: u64) { id: u64 = id, n: u64 = n }
}

/// The connected clients: the name of each, and the number of its requests.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<BTreeMap<u64, (String, u64)>>>);

impl Connections {
    fn connect(&self, id: u64, peer: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (peer.to_owned(), 0));
        tracepoint::trace!(connected(id, peer));
    }

    fn request(&self, id: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, requests)) = all.get_mut(&id) {
            *requests += 1;
            tracepoint::trace!(request(id, *requests));
        }
    }

    /// Fires an event for each connected client. The lock makes the dump consistent.
    fn dump(&self) {
        for (id, (peer, requests)) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            tracepoint::trace!(connection(*id, peer, *requests));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _agent = Agent::start().inspect_err(|error| eprintln!("{error}")).ok();
    let connections = Connections::default();

    // Called for each recording that begins; only that recording receives the events.
    let dumped = connections.clone();
    let _dump = state_dump("connections", move |_| dumped.dump());

    // These connections are not recorded.
    for (id, peer) in (1..).zip(["anna", "bert", "cleo"]) {
        connections.connect(id, peer);
    }
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("--serve") {
        println!("serving, as process {}", std::process::id());
        let time =
            arguments.next().map_or(Ok(Duration::MAX), |seconds| seconds.parse().map(Duration::from_secs_f64))?;
        let begin = Instant::now();
        while begin.elapsed() < time {
            (1..=3).for_each(|id| connections.request(id));
            std::thread::sleep(Duration::from_millis(10));
        }
        return Ok(());
    }

    let directory = first.map_or_else(|| std::env::temp_dir().join(format!("late-{}", std::process::id())), Into::into);
    let session = Session::builder("late").events("server:*").sink(CtfSink::create(&directory)?).start()?;
    connections.request(2);
    connections.connect(4, "dora");
    for dump in session.state_dumps() {
        println!("{dump}");
    }
    session.stop()?;
    println!("look at it by: babeltrace2 {}", directory.display());
    Ok(())
}
