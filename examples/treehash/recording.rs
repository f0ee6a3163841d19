//! The recording: a session from before the walk to after it.

use crate::options::Options;
use anyhow::Context;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tracepoint::sinks::account::{Account, EventAccount};
use tracepoint::sinks::{CtfSink, DtSink};
use tracepoint::{Channel, Session};

/// How much each thread can have recorded and not yet written. With the files in the page cache, a thread that has a processor
/// to itself records some 100,000 events or 13 MB a second: this lasts for 0.3 s, should the thread that writes find no
/// processor for so long.
const RING: usize = 4 << 20;

/// A running recording.
#[derive(Debug)]
pub struct Recording {
    session: Session,
    out: PathBuf,
    is_file: bool,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Where the trace is.
    pub out: PathBuf,
    /// Whether that is a circular file.
    pub is_file: bool,
    /// Bytes written.
    pub bytes: u64,
    /// What became of each event up to the rings.
    pub events: Vec<EventAccount>,
    /// How many events were lost, by reason; empty if none were.
    pub lost: BTreeMap<String, u64>,
}

impl Recording {
    /// Records all events of this program into the circular file or the directory of the options, or into a new directory; `threads`
    /// threads hash.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made or is not empty, if the file exists, or if the session does not start.
    pub fn start(options: &Options, threads: usize) -> anyhow::Result<Self> {
        // A ring for each thread that hashes, one for the thread that walks, and one to spare: all are there before the first
        // event, so that no thread finds none, and there are never more.
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

    /// Ends the recording: when it returns, the trace is whole.
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

/// All that was lost, before the rings and after them.
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
