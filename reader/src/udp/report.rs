//! The reports of a client.

use serde::Serialize;

use tracepoint_wire::udp::{Batch, CtfPackets, Losses, Welcome};

/// The layout of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// One event per message, for old clients and servers.
    Legacy,
    /// Many events per message.
    Batch(Welcome),
}

/// An event of the session, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// The session begins. Reported again if the server began another one instead.
    SessionBegin(Layout),
    /// This session is the first that reads the trace.
    TraceBegin,
    /// The metadata has grown by this text, which ends with a declaration.
    Metadata(Vec<u8>),
    /// An event, in the legacy layout.
    Event(LegacyEvent),
    /// Events, in the batch layout.
    Batch(EventBatch),
    /// Events or messages are missing here.
    Lost(LossReport),
    /// A message with this many events arrived after it was reported as missing. Its events are not delivered, because later ones were.
    Late(u64),
    /// The server was asked to stop.
    StopSent,
    /// The trace's account.
    Account(Vec<u8>),
    /// The trace has ended: no further events follow.
    TraceEnd,
    /// The session has ended.
    SessionEnd,
}

/// An event in the legacy layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LegacyEvent {
    /// The number of its message.
    pub seq: u32,
    /// Its time in nanoseconds.
    pub time_ns: u64,
    /// The event as an array of bytes.
    pub content: Vec<u8>,
}

/// The events of one message in the batch layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    /// Events of the session before it, lost ones included.
    pub events_before: u64,
    /// The number of its events.
    pub events: u32,
    /// CTF packets, one after the other.
    pub packets: Vec<u8>,
}

impl EventBatch {
    /// The CTF packets.
    pub fn packets(&self) -> CtfPackets<'_> {
        let Self { events_before, events, ref packets } = *self;
        Batch { events_before, events, number: 0, packets }.packets()
    }
}

/// A loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReport {
    /// Legacy layout: messages were lost. Their contents are not known.
    Messages {
        /// The number of the first message.
        first: u32,
        /// The number of messages.
        count: u64,
    },
    /// Legacy layout: the first message of the session was lost, and perhaps others after it.
    Beginning,
    /// Batch layout: number of events lost by the network.
    Events(u64),
    /// Number of events sent in the legacy layout before the server received ACCEPT. They are not delivered.
    BeforeOffer(u64),
    /// Batch layout: number of bytes missing at the end of the metadata. Events that they describe cannot be decoded.
    Metadata(u32),
    /// Events that the server could not send since the trace began.
    Unsent(Losses),
}

/// Counts of received and lost datagrams and events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Number of datagrams from the server.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of delivered events.
    pub events: u64,
    /// Number of events reported as lost by the network (batch layout), including late ones.
    pub lost_events: u64,
    /// Number of messages reported as lost (legacy layout), including late ones.
    pub lost_messages: u64,
    /// Number of metadata bytes that did not arrive (batch layout).
    pub lost_metadata: u64,
    /// Number of events that the server could not send.
    pub unsent_events: u64,
    /// Number of messages that arrived after they had been reported as lost.
    pub late_messages: u64,
    /// Events in these.
    pub late_events: u64,
    /// Number of messages that arrived more than once.
    pub duplicates: u64,
    /// Number of messages that arrived out of order, and were put into order.
    pub reordered: u64,
    /// Number of datagrams of another protocol, and of truncated datagrams.
    pub malformed: u64,
    /// Number of datagrams with a wrong checksum.
    pub corrupted: u64,
    /// Number of messages of other sessions, and of messages that contradict the session.
    pub foreign: u64,
}

impl Counts {
    /// True if a loss is known.
    pub fn any_lost(&self) -> bool {
        self.lost_events > 0 || self.lost_messages > 0 || self.lost_metadata > 0 || self.unsent_events > 0
    }
}

/// The way a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The server ended it: all losses are known.
    Ended,
    /// The server was asked to stop and did not answer: losses at the end are not known.
    Unconfirmed,
    /// The server fell silent: losses at the end are not known.
    Silent,
    /// The server has closed its port.
    Gone,
    /// START was not answered.
    NoServer {
        /// True if the system reported `connection refused`.
        refused: bool,
    },
    /// The answers are not of this protocol.
    Foreign,
}
