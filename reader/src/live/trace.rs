//! The metadata of one trace, as it arrives.

use super::LiveError;
use super::connection::Relay;
use crate::clock_alignment::ClockAlignment;
use crate::metadata::{MAX_METADATA, Metadata};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tracepoint_wire::live::{ClockOffset, MetadataBytes, MetadataStatus, Request};
use tracepoint_wire::stream::NO_BOUND;

/// A trace of a live session.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The stream of its metadata, once announced.
    pub(super) metadata_stream: Option<u64>,
    /// The last well-formed metadata.
    pub(super) metadata: Option<Metadata>,
    /// The reason why there is none; the metadata may still end within a declaration.
    pub(super) reason: Option<String>,
    /// True if no more metadata will arrive.
    pub(super) has_ended: bool,
    /// When the trace was announced.
    pub(super) announced: Option<Instant>,
    /// True once its unreadable metadata was reported.
    pub(super) is_unreadable: bool,
    /// True if more metadata may be available.
    pub(super) is_stale: bool,
    /// True once the relay was asked for the clock alignment, at the first packet or time of the trace. The answer holds for the whole view.
    pub(super) has_asked_clock: bool,
    pub(super) alignment: Option<ClockAlignment>,
    bytes: Vec<u8>,
}

impl Trace {
    /// Fetches metadata until there is none left.
    pub(super) fn fetch<S: Read + Write>(&mut self, relay: &mut Relay<S>) -> Result<(), LiveError> {
        let Some(stream) = self.metadata_stream.filter(|_| !self.has_ended) else { return Ok(()) };
        let known = self.bytes.len();
        loop {
            let owned = |bytes: &[u8]| {
                let reply = MetadataBytes::decode(bytes, MAX_METADATA as u64)?;
                Ok(reply.map(|MetadataBytes { status, bytes }| (status, bytes.to_vec())))
            };
            let (status, bytes) = relay.ask(Request::Metadata { stream }, owned)?;
            match status {
                MetadataStatus::Ok if bytes.is_empty() => {
                    return Err(LiveError::Relay("it announces metadata, and sends none"));
                }
                MetadataStatus::Ok => self.bytes.extend_from_slice(&bytes),
                MetadataStatus::Nothing => break,
                MetadataStatus::Error => {
                    self.has_ended = true;
                    break;
                }
            }
            let (size, most) = (self.bytes.len() as u64, MAX_METADATA as u64);
            if size > most {
                return Err(LiveError::TooMuch { what: "bytes of metadata", size, most });
            }
        }
        self.is_stale = false;
        if self.bytes.len() > known {
            match Metadata::parse(&self.bytes) {
                Ok(metadata) => {
                    let offset = self.alignment.map(|alignment| alignment.offset);
                    self.metadata = Some(offset.map_or(metadata.clone(), |offset| metadata.with_offset(offset)));
                    self.reason = None;
                }
                Err(error) => self.reason = Some(error.to_string()),
            }
        }
        Ok(())
    }

    /// The reason why its metadata cannot be read, after a wait of at least `wait`, or if no more will arrive.
    pub(super) fn unreadable(&self, is_over: bool, wait: Duration) -> Option<String> {
        let has_ended = is_over || self.has_ended;
        if self.metadata.is_some() || !(has_ended || self.has_waited(wait)) {
            return None;
        }
        let reason = self.reason.as_deref().unwrap_or("there is none");
        Some(if has_ended {
            format!("its metadata has ended, and cannot be read: {reason}")
        } else {
            format!("its metadata cannot be read after {} seconds: {reason}", wait.as_secs())
        })
    }

    /// True if it was announced at least `wait` ago.
    pub(super) fn has_waited(&self, wait: Duration) -> bool {
        self.announced.is_some_and(|announced| announced.elapsed() >= wait)
    }

    /// The identity of its clock.
    pub(super) fn clock(&self) -> Option<[u8; 16]> {
        self.metadata.as_ref()?.clocks().first()?.uuid
    }

    /// Aligns the clock once: with the `known` alignment, or by asking the relay. Called when a stream of the trace has sent data, which is after the
    /// first measurement.
    pub(super) fn align<S: Read + Write>(
        &mut self,
        relay: &mut Relay<S>,
        stream: u64,
        known: Option<ClockAlignment>,
    ) -> Result<(), LiveError> {
        let Some(metadata) = self.metadata.as_ref().filter(|_| !self.has_asked_clock && relay.is_collector) else {
            return Ok(());
        };
        let clock = metadata.clocks().first();
        let ClockOffset { offset, bound } = match known {
            Some(ClockAlignment { offset, bound, .. }) => ClockOffset { offset, bound },
            None => relay.ask(Request::Clock { stream }, |bytes| Ok(ClockOffset::decode(bytes)))?,
        };
        self.has_asked_clock = true;
        self.alignment = clock.filter(|_| bound != NO_BOUND).map(|clock| ClockAlignment::of(clock, offset, bound));
        if self.alignment.is_some() {
            self.metadata = Some(metadata.with_offset(offset));
        }
        Ok(())
    }

    /// Converts a time of the clock of a stream class to nanoseconds since the epoch; uses any clock of the trace if the class is not known.
    pub(super) fn nanoseconds(&self, class: u64, cycles: u64) -> Option<i64> {
        let metadata = self.metadata.as_ref()?;
        let class = metadata.stream(class).or_else(|| metadata.streams().next())?;
        Some(metadata.nanoseconds(class, cycles))
    }
}
