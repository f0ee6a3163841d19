//! What a client has to tell.

use super::wire::{Batch, CtfPackets, Losses, Welcome};

/// In which layout a session is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One event in a message: what a server that offers nothing else sends.
    Legacy,
    /// Many events in a message.
    Batch(Welcome),
}

/// What happened, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// The session begins. Told once more if the server began another one instead.
    SessionBegin(Layout),
    /// Nobody has read this trace before.
    TraceBegin,
    /// The metadata has grown by this, which ends where a declaration does.
    Metadata(Vec<u8>),
    /// An event, in the legacy layout.
    Event(LegacyEvent),
    /// Events, in the batch layout.
    Batch(EventBatch),
    /// Something is missing here.
    Lost(Lost),
    /// A message came that was told as missing before; so many events are in it. They are not given out: their place is behind us.
    Late(u64),
    /// The server was asked to stop.
    StopSent,
    /// The trace's account.
    Account(Vec<u8>),
    /// There are no further events, and never will be.
    TraceEnd,
    /// The session has ended.
    SessionEnd,
}

/// An event in the legacy layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyEvent {
    /// The number of its message.
    pub seq: u32,
    /// When it was recorded, in nanoseconds.
    pub time_ns: u64,
    /// The event as an array of bytes.
    pub content: Vec<u8>,
}

/// The events of one message in the batch layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventBatch {
    /// How many events of the session came before it, lost ones included.
    pub events_before: u64,
    /// How many there are.
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

/// What is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// Legacy layout: so many messages, the first of which has the number `first`. What was in them is not known.
    Messages {
        /// The number of the first one.
        first: u32,
        /// How many.
        count: u64,
    },
    /// Legacy layout: the message with which the session began, and perhaps others behind it.
    Beginning,
    /// Batch layout: so many events were lost on the way.
    Events(u64),
    /// So many events were sent in the legacy layout, before the server knew that the batch layout was wanted, and are not taken.
    BeforeOffer(u64),
    /// Batch layout: so many bytes at the end of the metadata: what they describe cannot be decoded.
    Metadata(u32),
    /// Events that the server itself could not send, since the trace began.
    Unsent(Losses),
}

/// What came in, and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Datagrams that came from the server.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events that were given out.
    pub events: u64,
    /// Events that were reported as lost on the way (batch layout), those that came too late included.
    pub lost_events: u64,
    /// Messages that were reported as lost (legacy layout), those that came too late included.
    pub lost_messages: u64,
    /// Bytes of metadata that did not arrive (batch layout).
    pub lost_metadata: u64,
    /// Events that the server could not send.
    pub unsent_events: u64,
    /// Messages that came after they had been reported as lost.
    pub late_messages: u64,
    /// Events in these.
    pub late_events: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Messages that came after one that was sent later, and were put into their places.
    pub reordered: u64,
    /// Datagrams that are none of this protocol, or were cut off on the way.
    pub malformed: u64,
    /// Datagrams with a wrong checksum.
    pub corrupted: u64,
    /// Messages of other sessions, or that say what cannot be.
    pub foreign: u64,
}

impl Counts {
    /// Whether anything is known to be missing.
    pub fn any_lost(&self) -> bool {
        self.lost_events > 0 || self.lost_messages > 0 || self.lost_metadata > 0 || self.unsent_events > 0
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The server said so: what was lost is known.
    Ended,
    /// The server was asked to stop, and did not answer: what was lost at the end is not known.
    Unconfirmed,
    /// Nothing came any more: what was lost at the end is not known.
    Silent,
    /// Nobody listens there any more.
    Gone,
    /// Nobody answered START; whether the system said that nobody listens there.
    NoServer {
        /// Whether it did.
        refused: bool,
    },
    /// What answered does not speak this protocol.
    Foreign,
}
