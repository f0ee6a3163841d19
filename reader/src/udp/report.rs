//! What a client reports.

use serde::Serialize;

use tracepoint_wire::udp::{Batch, CtfPackets, Losses, Welcome};

/// The layout of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// One event per message, as old clients and servers have it.
    Legacy,
    /// Many events per message.
    Batch(Welcome),
}

/// What happened, in order.
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
    Lost(Lost),
    /// A message with so many events came after it was reported as missing. Its events are not delivered, as later ones were.
    Late(u64),
    /// The server was asked to stop.
    StopSent,
    /// The trace's account.
    Account(Vec<u8>),
    /// The trace has ended: there will be no further events.
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
pub enum Lost {
    /// Legacy layout: messages were lost. Their contents are not known.
    Messages {
        /// The number of the first message.
        first: u32,
        /// The number of messages.
        count: u64,
    },
    /// Legacy layout: the first message of the session was lost, and perhaps others behind it.
    Beginning,
    /// Batch layout: so many events were lost by the network.
    Events(u64),
    /// So many events were sent in the legacy layout before the server received ACCEPT. They are not delivered.
    BeforeOffer(u64),
    /// Batch layout: so many bytes at the end of the metadata. Events that they describe cannot be decoded.
    Metadata(u32),
    /// Events that the server could not send since the trace began.
    Unsent(Losses),
}

/// Counts of received and lost datagrams and events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Datagrams that came from the server.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events that were delivered.
    pub events: u64,
    /// Events that were reported as lost by the network (batch layout), late ones included.
    pub lost_events: u64,
    /// Messages that were reported as lost (legacy layout), late ones included.
    pub lost_messages: u64,
    /// Bytes of metadata that did not arrive (batch layout).
    pub lost_metadata: u64,
    /// Events that the server could not send.
    pub unsent_events: u64,
    /// Messages that came after they had been reported as lost.
    pub late_messages: u64,
    /// Events in these.
    pub late_events: u64,
    /// Messages that came more than once.
    pub duplicates: u64,
    /// Messages that came out of order, and were sorted in.
    pub reordered: u64,
    /// Datagrams of another protocol, and datagrams that were cut off.
    pub malformed: u64,
    /// Datagrams with a wrong checksum.
    pub corrupted: u64,
    /// Messages of other sessions, and messages that contradict the session.
    pub foreign: u64,
}

impl Counts {
    /// Whether a loss is known.
    pub fn any_lost(&self) -> bool {
        self.lost_events > 0 || self.lost_messages > 0 || self.lost_metadata > 0 || self.unsent_events > 0
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
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
        /// Whether the system reported `connection refused`.
        refused: bool,
    },
    /// The answers do not have this protocol.
    Foreign,
}
