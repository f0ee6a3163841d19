//! The recording: a session that lasts from before the walk until after it.

use crate::options::Options;
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tracepoint::sinks::account::{Account, EventAccount};
use tracepoint::sinks::{CtfSink, DtSink};
use tracepoint::{Channel, Session};

/// Maximum size of events that a thread has recorded and that are not written yet. With the files in the page cache, a thread with a processor
/// of its own records about 100,000 events or 13 MB per second: the ring lasts for 0.3 s if the writing thread gets no
/// processor in that time.
const RING: usize = 4 << 20;

/// A running recording.
#[derive(Debug)]
pub struct Recording {
    session: Session,
    out: PathBuf,
    is_file: bool,
}

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The place of the trace.
    pub out: PathBuf,
    /// True if it is a circular file.
    pub is_file: bool,
    /// Bytes written.
    pub bytes: u64,
    /// Counts of each event up to the rings.
    pub events: Vec<EventAccount>,
    /// Number of lost events by reason; empty if there are none.
    pub lost: BTreeMap<String, u64>,
}

impl Recording {
    /// Records all events of this program into the circular file or directory given by the options, or into a new directory. `threads` is the
    /// number of hashing threads.
    ///
    /// # Errors
    ///
    /// If the directory cannot be created or is not empty, the file exists, or the session does not start.
    pub fn start(options: &Options, threads: usize) -> anyhow::Result<Self> {
        // A ring for each hashing thread, one for the walking thread, and one spare. All exist before the first
        // event, so that every thread finds one, and their number never grows.
        let rings = threads + 2;
        let channel = Channel::discard(RING).spares(rings).max_rings(rings);
        let session = Session::builder("treehash").events("treehash:*").channel(channel);
        let (session, out) = if let Some(file) = &options.dt {
            (session.sink(DtSink::create(file, options.dt_slots)?), file.clone())
        } else {
            let out = options.out.clone().map_or_else(new_directory, Ok)?;
            (session.sink(CtfSink::create(&out)?), out)
        };
        let session = session.start()?;
        for notice in session.notices() {
            eprintln!("treehash: {notice}");
        }
        Ok(Self { session, out, is_file: options.dt.is_some() })
    }

    /// Ends the recording. When it returns, the trace is complete.
    ///
    /// # Errors
    ///
    /// If the trace could not be written.
    pub fn stop(self) -> anyhow::Result<Recorded> {
        let summary = self.session.stop().context("the trace is not whole")?;
        let lost = summary.account().map(lost).unwrap_or_default();
        Ok(Recorded {
            out: self.out,
            is_file: self.is_file,
            bytes: summary.bytes,
            events: summary.events().to_vec(),
            lost,
        })
    }
}

fn new_directory() -> anyhow::Result<PathBuf> {
    let directory = tempfile::Builder::new().prefix("treehash-").tempdir();
    Ok(directory.context("cannot make a directory for the trace; name one with --out DIR")?.keep())
}

/// All losses, before the rings and after them.
fn lost(account: &Account) -> BTreeMap<String, u64> {
    let mut lost = BTreeMap::new();
    let mut add = |reason: &str, count| {
        if count > 0 {
            *lost.entry(reason.to_owned()).or_default() += count;
        }
    };
    for channel in &account.channels {
        for event in &channel.events {
            event.lost.iter().for_each(|(reason, count)| add(reason, *count));
        }
        for stream in &channel.streams {
            add("overwritten", stream.overwritten);
            add("sink", stream.sink);
        }
    }
    lost
}
