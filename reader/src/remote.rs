//! Takes the packets of a running process from another process, through its ring files, while it writes them.
//!
//! ```text
//!   look ─▶ number of closed packets    ┐
//!   describe ─▶ metadata, if it grew    ├─▶ take ─▶ each packet once ─▶ its sub-buffer is released
//!                                       ┘
//!   end: the process has died, or has ended the recording ─▶ the rest, including committed records of open packets ─▶ the account
//! ```
//!
//! The process takes no part in this, and need not be scheduled. The order ensures that no packet is taken before its events are described: events
//! are described before they are switched on, so a packet that was closed before the metadata was read only has described events.
//!
//! The files are not trusted: a packet is passed on only if its records match the metadata and it fits after the previous one. Other
//! packets are dropped.

mod end;
mod ring;

use crate::account::Policy;
use crate::checksum::{seal, sealed};
use crate::error::ReadError;
use crate::metadata::Metadata;
use crate::record::sizes::RecordSizes;
use crate::ring::{Ring, Side};
use crate::take::{Journal, Position, Walker, check_layout};
pub use end::End;
use fileguard::CheckedFd;
use ring::RemoteRing;
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// Takes packets from the rings of one process in one session.
#[derive(Debug)]
pub struct RemoteConsumer {
    text: Vec<u8>,
    metadata: Metadata,
    uuid: [u8; 16],
    walker: Walker,
    names: BTreeSet<String>,
    rings: Vec<RingTaker>,
    journal: Journal,
    buffer: Vec<u8>,
}

/// One ring, and the position up to which it was taken.
#[derive(Debug)]
struct RingTaker {
    remote: RemoteRing,
    /// The position of each side.
    positions: [Position; 2],
    /// The packets found by the last look, of each side.
    waiting: [Range<u64>; 2],
    is_readable: bool,
}

/// A packet taken from a ring.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TakenPacket<'a> {
    /// Its stream class.
    pub class: u32,
    /// Its stream instance.
    pub instance: u64,
    /// The name of its channel.
    pub channel: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Number of records in the stream before it.
    pub events_before: u64,
    /// Number of records in the stream up to its end.
    pub events_after: u64,
    ring: &'a Ring,
    side: Side,
}

impl TakenPacket<'_> {
    /// The empty packet at the beginning of its stream.
    pub fn first_packet(&self) -> Vec<u8> {
        sealed(self.ring.empty_packet(self.side, self.ring.opened()).bytes()).to_vec()
    }
}

/// A channel, as described by its rings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelInfo {
    /// Its stream class.
    pub class: u32,
    /// Its name.
    pub name: String,
    /// Its behaviour when a ring is full.
    pub policy: Policy,
    /// The size of its largest packet, in bytes.
    pub packet_size: u64,
}

/// The result of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// Number of packets passed on.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl RemoteConsumer {
    /// A process with the metadata `text`. It has no rings yet.
    ///
    /// # Errors
    /// As [`Metadata::parse`]; [`ReadError::Metadata`] if it does not have the form written by the tracer.
    pub fn new(text: Vec<u8>) -> Result<Self, ReadError> {
        let metadata = Metadata::parse(&text)?;
        let uuid =
            metadata.uuid().ok_or_else(|| wrong("the trace has no uuid, so that `tracepoint` did not write it"))?;
        for class in metadata.streams() {
            let id = u32::try_from(class.id).map_err(|_| wrong(format!("no channel has the id {}", class.id)))?;
            check_layout(&metadata, uuid, id).map_err(|error| wrong(error.to_string()))?;
        }
        let walker = Walker::new(RecordSizes::of(&metadata));
        Ok(Self {
            text,
            metadata,
            uuid,
            walker,
            names: BTreeSet::new(),
            rings: Vec::new(),
            journal: Journal::default(),
            buffer: Vec::new(),
        })
    }

    /// The metadata.
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The text of the metadata.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Identifies the trace.
    pub const fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// Replaces the metadata by `text`, which must continue it. Returns the new part.
    ///
    /// # Errors
    /// As [`RemoteConsumer::new`]; [`ReadError::Metadata`] if it does not begin with the previous text.
    pub fn describe(&mut self, text: Vec<u8>) -> Result<Vec<u8>, ReadError> {
        let Some(more) = text.strip_prefix(&self.text[..]).map(<[u8]>::to_vec) else {
            return Err(wrong("it changed, but it may only grow"));
        };
        let metadata = Metadata::parse(&text)?;
        self.walker.set_sizes(RecordSizes::of(&metadata));
        (self.metadata, self.text) = (metadata, text);
        Ok(more)
    }

    /// True if the ring file of this name was added.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Adds a ring file, which must be open for reading and writing. `false` if the process has not completed it yet: the caller may try again. An
    /// unusable file is reported in the account, which is then not complete.
    pub fn add(&mut self, name: &str, path: &Path, file: CheckedFd<File>) -> bool {
        let remote = match RemoteRing::open(path, file) {
            Ok(Some(remote)) => remote,
            Ok(None) => return false,
            Err(error) => {
                self.journal.wrong(format!("{error}; not used"));
                self.names.insert(name.to_owned());
                return true;
            }
        };
        self.names.insert(name.to_owned());
        let ring = remote.ring();
        let has_same_streams = |other: &RingTaker| {
            let other = other.ring();
            other.class() == ring.class() && other.instance(Side::Main).abs_diff(ring.instance(Side::Main)) < 2
        };
        if ring.uuid() != self.uuid || self.metadata.stream(ring.class().into()).is_none() {
            let path = path.display();
            self.journal
                .wrong(format!("{path}: the ring belongs to another trace than the metadata beside it; not used"));
        } else if self.rings.iter().any(has_same_streams) {
            self.journal.wrong(format!("{}: another ring has the same streams; not used", path.display()));
        } else {
            let positions = Side::ALL.map(|_| Position::new(ring.opened()));
            self.rings.push(RingTaker { remote, positions, waiting: [0..0, 0..0], is_readable: true });
        }
        true
    }

    /// The number of ring files, each of which is open unless it was [closed](Self::close_files).
    pub fn files(&self) -> usize {
        self.rings.len()
    }

    /// Closes the ring files until the next access to each.
    pub fn close_files(&self) {
        self.rings.iter().for_each(|taker| taker.remote.close_file());
    }

    /// The channels of the rings that were added.
    pub fn channels(&self) -> Vec<ChannelInfo> {
        let mut channels: Vec<ChannelInfo> = Vec::new();
        for ring in self.rings.iter().map(RingTaker::ring) {
            let packet_size = ring.sub_buffer_size(Side::Main);
            if let Some(channel) = channels.iter_mut().find(|channel| channel.class == ring.class()) {
                channel.packet_size = channel.packet_size.max(packet_size);
            } else {
                let (class, name, policy) = (ring.class(), ring.identity().channel.clone(), ring.policy());
                channels.push(ChannelInfo { class, name, policy, packet_size });
            }
        }
        channels.sort_by_key(|channel| channel.class);
        channels
    }

    /// Finds the closed packets for [`take`](Self::take). Returns the fill level of the fullest ring, in percent.
    pub fn look(&mut self) -> u32 {
        let mut fullness = 0;
        for taker in self.rings.iter_mut().filter(|taker| taker.is_readable) {
            match taker.remote.waiting() {
                Ok(waiting) => taker.waiting = waiting,
                Err(error) => {
                    self.journal.wrong(format!("{error}; the rest of it is left out"));
                    (taker.waiting, taker.is_readable) = ([0..0, 0..0], false);
                }
            }
            for (side, waiting) in Side::ALL.iter().zip(&taker.waiting) {
                fullness = fullness.max(taker.ring().slots(*side).percent(waiting));
            }
        }
        fullness
    }

    /// Passes the packets found by [`look`](Self::look) to `take`, oldest first in each stream, and releases their sub-buffers.
    pub fn take(&mut self, mut take: impl FnMut(TakenPacket<'_>)) -> Round {
        let mut round = Round::default();
        let Self { metadata, walker, rings, journal, buffer, .. } = self;
        for taker in rings {
            taker.take(metadata, walker, journal, buffer, &mut |packet| {
                round.packets += 1;
                round.bytes += packet.bytes.len() as u64;
                take(packet);
            });
        }
        round
    }
}

fn wrong(reason: impl Into<String>) -> ReadError {
    ReadError::Metadata { path: "metadata".into(), line: 0, offset: 0, reason: reason.into() }
}

impl RingTaker {
    const fn ring(&self) -> &Ring {
        self.remote.ring()
    }

    /// Takes the waiting packets.
    fn take(
        &mut self,
        metadata: &Metadata,
        walker: &mut Walker,
        journal: &mut Journal,
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) {
        for side in Side::ALL {
            for number in std::mem::replace(&mut self.waiting[side.index()], 0..0) {
                if let Err(error) = self.take_one(side, number, (metadata, walker, journal, buffer), take) {
                    journal.wrong(format!("{error}; the rest of it is left out"));
                    self.is_readable = false;
                    return;
                }
            }
        }
    }

    fn take_one(
        &mut self,
        side: Side,
        number: u64,
        (metadata, walker, journal, buffer): (&Metadata, &mut Walker, &mut Journal, &mut Vec<u8>),
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) -> Result<(), ReadError> {
        let position = &mut self.positions[side.index()];
        let checked = self.remote.ring().leased_packet(side, number, buffer)?.and_then(|length| {
            let next = position.check(walker, metadata, &mut buffer[..length], None);
            next.map(|next| (length, next)).map_err(|reason| format!("packet {}: {reason}", number + 1))
        });
        match checked {
            Ok((length, next)) => {
                position.advance(&next, walker);
                seal(&mut buffer[..length]);
                take(self.packet(side, &buffer[..length], next.before, next.after));
            }
            Err(reason) => journal.wrong(format!("{}: {reason}", self.ring().path().display())),
        }
        let released = self.remote.release(side, number + 1);
        released.map_err(|source| ReadError::Io { path: self.ring().path().to_owned(), source })
    }

    fn packet<'a>(&'a self, side: Side, bytes: &'a [u8], events_before: u64, events_after: u64) -> TakenPacket<'a> {
        let ring = self.ring();
        let (class, instance, channel) = (ring.class(), ring.instance(side), &ring.identity().channel);
        TakenPacket { class, instance, channel, bytes, events_before, events_after, ring, side }
    }
}
