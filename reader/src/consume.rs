//! Takes the packets of a process that is being recorded, from outside: out of its ring files, while it writes them.
//!
//! ```text
//!   look ─▶ how many packets are closed ┐
//!   describe ─▶ metadata, if it grew    ├─▶ take ─▶ each packet once ─▶ its place is the owner's again
//!                                       ┘
//!   end: the owner is gone, or has ended the recording ─▶ the rest, what is committed of open packets included ─▶ the account
//! ```
//!
//! The owner is asked for nothing, and need not run. In this order no packet is taken whose events are not described yet: they are
//! described before they are switched on, and a packet that was closed before the description was read has none but these.
//!
//! What is in the files is hostile: a packet is handed on if its records are as the metadata says and it fits behind the one before, and
//! dropped otherwise.

mod end;
mod position;

use crate::account::Policy;
use crate::error::ReadError;
use crate::metadata::Metadata;
use crate::recover::{Journal, check_layout};
use crate::ring::{RingConsumer, Side};
use crate::sizes::Sizes;
pub use end::End;
use position::{Position, Walk};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// The rings of one process in one session.
#[derive(Debug)]
pub struct Consumer {
    text: Vec<u8>,
    metadata: Metadata,
    uuid: [u8; 16],
    walk: Walk,
    names: BTreeSet<String>,
    rings: Vec<Taker>,
    journal: Journal,
    buffer: Vec<u8>,
}

/// One ring, and how far it is.
#[derive(Debug)]
struct Taker {
    consumer: RingConsumer,
    /// Of each side.
    positions: [Position; 2],
    waiting: [Range<u64>; 2],
    /// Whether it can be read still.
    is_readable: bool,
}

/// A packet that was taken.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TakenPacket<'a> {
    /// Its stream class.
    pub class: u32,
    /// Its stream instance.
    pub instance: u64,
    /// The name of its channel.
    pub channel: &'a str,
    /// All of it.
    pub bytes: &'a [u8],
    /// How many records the stream has before it.
    pub events_before: u64,
    /// How many records the stream has up to its end.
    pub events_after: u64,
    ring: &'a RingConsumer,
    side: Side,
}

impl TakenPacket<'_> {
    /// The empty packet with which its stream begins.
    pub fn first_packet(&self) -> Vec<u8> {
        self.ring.first_packet(self.side)
    }
}

/// A channel, as its rings say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelInfo {
    /// Its stream class.
    pub class: u32,
    /// Its name.
    pub name: String,
    /// What it does when a ring is full.
    pub policy: Policy,
    /// The size of its largest packet, in bytes.
    pub packet_size: u64,
}

/// What one round has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// Packets that were handed on.
    pub packets: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Consumer {
    /// A process whose metadata is this, without rings as yet.
    ///
    /// # Errors
    /// As [`Metadata::parse`]; [`ReadError::Metadata`] if it is not as the tracer writes it.
    pub fn new(text: Vec<u8>) -> Result<Self, ReadError> {
        let metadata = Metadata::parse(&text)?;
        let wrong = |reason: String| ReadError::Metadata { path: "metadata".into(), line: 0, offset: 0, reason };
        let uuid = metadata
            .uuid()
            .ok_or_else(|| wrong("the trace has no uuid: a tracepoint did not write this".to_owned()))?;
        for class in metadata.streams() {
            let id = u32::try_from(class.id).map_err(|_| wrong(format!("no channel has the id {}", class.id)))?;
            check_layout(&metadata, uuid, id).map_err(wrong)?;
        }
        let walk = Walk::new(Sizes::of(&metadata));
        Ok(Self {
            text,
            metadata,
            uuid,
            walk,
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

    /// Its text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Identifies the trace.
    pub const fn uuid(&self) -> [u8; 16] {
        self.uuid
    }

    /// The metadata has grown: the text that is new.
    ///
    /// # Errors
    /// As [`Consumer::new`]; [`ReadError::Metadata`] if it is not the former with something behind it.
    pub fn describe(&mut self, text: Vec<u8>) -> Result<Vec<u8>, ReadError> {
        let Some(more) = text.strip_prefix(&self.text[..]).map(<[u8]>::to_vec) else {
            let reason = "it is another one than before, where it may only grow".to_owned();
            return Err(ReadError::Metadata { path: "metadata".into(), line: 0, offset: 0, reason });
        };
        let metadata = Metadata::parse(&text)?;
        self.walk.describe(Sizes::of(&metadata));
        (self.metadata, self.text) = (metadata, text);
        Ok(more)
    }

    /// Whether the ring file of this name was added.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Adds a ring file, open for reading and writing; `false` if the process had not made it a ring yet: it can be tried again.
    /// One that cannot be used is told in the account, which is not complete then.
    pub fn add(&mut self, name: &str, path: &Path, file: File) -> bool {
        let consumer = match RingConsumer::open(path, file) {
            Ok(Some(consumer)) => consumer,
            Ok(None) => return false,
            Err(error) => {
                self.journal.wrong(format!("{error}; not used"));
                self.names.insert(name.to_owned());
                return true;
            }
        };
        self.names.insert(name.to_owned());
        let ring = consumer.ring();
        let same = |other: &Taker| {
            let other = other.consumer.ring();
            other.class() == ring.class() && other.instance(Side::Main).abs_diff(ring.instance(Side::Main)) < 2
        };
        if ring.uuid() != self.uuid || self.metadata.stream(ring.class().into()).is_none() {
            self.journal.wrong(format!(
                "{}: the ring is of another trace than the metadata beside it; not used",
                path.display()
            ));
        } else if self.rings.iter().any(same) {
            self.journal.wrong(format!("{}: another ring has the same streams; not used", path.display()));
        } else {
            let positions = Side::ALL.map(|_| Position::new(ring.opened()));
            self.rings.push(Taker { consumer, positions, waiting: [0..0, 0..0], is_readable: true });
        }
        true
    }

    /// The channels of the rings that were added.
    pub fn channels(&self) -> Vec<ChannelInfo> {
        let mut channels: Vec<ChannelInfo> = Vec::new();
        for ring in self.rings.iter().map(|taker| taker.consumer.ring()) {
            let packet_size = ring.place_size(Side::Main);
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

    /// Looks which packets are closed, for [`Consumer::take`]: how full the fullest ring is, in percent.
    pub fn look(&mut self) -> u32 {
        let mut fullness = 0;
        for taker in self.rings.iter_mut().filter(|taker| taker.is_readable) {
            match taker.consumer.waiting() {
                Ok(waiting) => taker.waiting = waiting,
                Err(error) => {
                    self.journal.wrong(format!("{error}; the rest of it is left out"));
                    (taker.waiting, taker.is_readable) = ([0..0, 0..0], false);
                }
            }
            for (side, waiting) in Side::ALL.iter().zip(&taker.waiting) {
                fullness = fullness.max(taker.consumer.percent(*side, waiting));
            }
        }
        fullness
    }

    /// Hands the packets that [`Consumer::look`] has found to `take`, oldest first in each stream, and gives their places back.
    pub fn take(&mut self, mut take: impl FnMut(TakenPacket<'_>)) -> Round {
        let mut round = Round::default();
        let Self { metadata, walk, rings, journal, buffer, .. } = self;
        for taker in rings {
            taker.take(metadata, walk, journal, buffer, &mut |packet| {
                round.packets += 1;
                round.bytes += packet.bytes.len() as u64;
                take(packet);
            });
        }
        round
    }
}

impl Taker {
    /// Takes what is waiting.
    fn take(
        &mut self,
        metadata: &Metadata,
        walk: &mut Walk,
        journal: &mut Journal,
        buffer: &mut Vec<u8>,
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) {
        for (index, side) in Side::ALL.into_iter().enumerate() {
            for number in std::mem::replace(&mut self.waiting[index], 0..0) {
                if let Err(error) = self.take_one(side, index, number, (metadata, walk, journal, buffer), take) {
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
        index: usize,
        number: u64,
        (metadata, walk, journal, buffer): (&Metadata, &mut Walk, &mut Journal, &mut Vec<u8>),
        take: &mut dyn FnMut(TakenPacket<'_>),
    ) -> Result<(), ReadError> {
        let class = self.consumer.ring().class();
        let found = self.consumer.packet(side, number, buffer)?;
        let fits = found.and_then(|head| {
            let walked = walk.packet(metadata, class, &buffer[..head.size], head.begin)?;
            let (before, after) = self.positions[index].pass(number + 1, &head, &walked)?;
            Ok((head.size, before, after))
        });
        match fits {
            Ok((length, events_before, events_after)) => {
                walk.settle(&mut self.positions[index]);
                take(self.packet(side, &buffer[..length], events_before, events_after));
            }
            Err(reason) => journal.wrong(format!("{}: {reason}", self.consumer.ring().path().display())),
        }
        let path = self.consumer.ring().path().to_owned();
        self.consumer.release(side, number + 1).map_err(|source| ReadError::Io { path, source })
    }

    fn packet<'a>(&'a self, side: Side, bytes: &'a [u8], events_before: u64, events_after: u64) -> TakenPacket<'a> {
        let ring = self.consumer.ring();
        let (class, instance, channel) = (ring.class(), ring.instance(side), &ring.identity().channel);
        TakenPacket { class, instance, channel, bytes, events_before, events_after, ring: &self.consumer, side }
    }
}
