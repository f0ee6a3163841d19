//! The trait of all sinks.

use crate::account::Account;
use crate::description::{ChannelDescription, EventDescription};
use crate::error::SinkError;
use crate::trace_info::TraceInfo;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use tracepoint_core::channel::{Packet, StreamId};

/// One stream: the packets of one ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its stream class and instance number.
    pub id: StreamId,
    /// The name of its channel.
    pub channel: String,
}

/// Where a sink keeps what it gets, so that it can be found without the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// In which format, in one word: `ctf`.
    pub format: &'static str,
    /// The absolute path.
    pub path: PathBuf,
}

/// Takes whole packets.
///
/// ```text
///   begin ──▶ describe ──▶ packet*, checkpoint* ──▶ finish
///                ▲────────────┘ more events, while packets come
/// ```
///
/// All calls come from one thread at a time, and never from one that traces. A sink may block; the rings meanwhile fill up,
/// and what they cannot take is counted. A sink that panics is not called again, and what it would have got is counted as
/// lost.
pub trait Sink: Send {
    /// What the sink is called in messages: `CTF in /tmp/trace`.
    fn name(&self) -> String;

    /// The trace begins. Called once, first.
    ///
    /// # Errors
    ///
    /// If nothing can be written; the recording then does not start.
    fn begin(&mut self, trace: &TraceInfo, channels: &[ChannelDescription]) -> Result<(), SinkError>;

    /// Events that may stand in packets from now on. Called before they are switched on; may be called again.
    ///
    /// # Errors
    ///
    /// If they cannot be written down; the events are then not switched on.
    fn describe(&mut self, events: &[EventDescription]) -> Result<(), SinkError>;

    /// The trace has another channel from now on, whose events are described next. Sinks that work with any channel return `Ok`.
    ///
    /// # Errors
    ///
    /// If the sink cannot take packets of another channel while it records, which is so unless it implements this; the channel is then not
    /// added.
    fn add_channel(&mut self, trace: &TraceInfo, channel: &ChannelDescription) -> Result<(), SinkError> {
        let _ = trace;
        let action = format!("record the channel `{}` into {}", channel.name, self.name());
        Err(SinkError::new(
            action,
            io::Error::new(io::ErrorKind::Unsupported, "this sink takes no channel while it records"),
        ))
    }

    /// The same as [`begin`](Self::begin) for a trace that another process records, whose metadata so far is `text`, events included: what
    /// is written down is that. Of contexts, `channels` say nothing then.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    fn begin_with_text(
        &mut self,
        trace: &TraceInfo,
        channels: &[ChannelDescription],
        text: &str,
    ) -> Result<(), SinkError> {
        let _ = text;
        self.begin(trace, channels)
    }

    /// The same as [`describe`](Self::describe) for such a trace, whose metadata has grown by `text`; it is empty where `events` were in
    /// the text with which the trace began. Of fields, `events` say nothing.
    ///
    /// # Errors
    ///
    /// As [`describe`](Self::describe).
    fn describe_with_text(&mut self, events: &[EventDescription], text: &str) -> Result<(), SinkError> {
        let _ = text;
        self.describe(events)
    }

    /// A packet. Those of one stream come in their order; the first and the last of each stream hold no record.
    ///
    /// # Errors
    ///
    /// If the packet was not taken, no part of it. It is counted as lost by the sink, and the next one is tried.
    fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError>;

    /// All rings were looked at, and what was there has come as packets; packets that are open for 500 ms are closed before. The next look is
    /// within 200 ms, whether anything comes or not. For sinks that keep something back for a while.
    fn look_ended(&mut self) {}

    /// Whether [`checkpoint`](Self::checkpoint) is to be called.
    fn wants_checkpoints(&self) -> bool {
        false
    }

    /// The settled account so far, for sinks that keep it while the trace goes on: when events were described, and every 500 ms while packets come.
    ///
    /// # Errors
    ///
    /// If it could not be kept. The first error of a sink is told at the end.
    fn checkpoint(&mut self, account: &Account) -> Result<(), SinkError> {
        let _ = account;
        Ok(())
    }

    /// Whether it can go on in another place: see [`rotate`](Self::rotate).
    fn can_rotate(&self) -> bool {
        false
    }

    /// Whether it is time to. Asked after each packet, and whenever packets are moved.
    fn rotation_is_due(&self) -> bool {
        false
    }

    /// Closes what was written so far as a trace by itself, and goes on in the next: where the one before is; `None` if nothing was
    /// written since the last time, and for sinks that cannot.
    ///
    /// # Errors
    ///
    /// If it cannot go on there: it goes on where it is.
    fn rotate(&mut self) -> Result<Option<PathBuf>, SinkError> {
        Ok(None)
    }

    /// Puts right in the account what became of packets that the sink took and did not keep: they are overwritten, not written.
    fn settle(&self, account: &mut Account) {
        let _ = account;
    }

    /// The trace ends. Called once, last. The account is settled.
    ///
    /// # Errors
    ///
    /// If something is not in its final place.
    fn finish(&mut self, account: &Account) -> Result<(), SinkError>;

    /// The name of the file, inside the sink's place, that holds a stream's packets; empty if there is no such file.
    fn file_of(&self, stream: &StreamInfo) -> String {
        let _ = stream;
        String::new()
    }

    /// How many records of a stream it has lost, by reason, that were in packets which it took: a sink that keeps packets for later
    /// may find then that it cannot pass them on. Asked whenever the books are made, and last after `finish`.
    fn lost(&self, stream: StreamId) -> BTreeMap<&'static str, u64> {
        let _ = stream;
        BTreeMap::new()
    }

    /// Where it keeps the packets, as whole packets in a format that can be read back; `None` if it does not. When a process is
    /// killed, what it had handed on already is looked for there.
    fn output(&self) -> Option<Output> {
        None
    }
}
