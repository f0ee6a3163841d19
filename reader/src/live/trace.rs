//! The metadata of one trace, as it arrives.

use super::LiveError;
use super::connection::Relay;
use crate::metadata::{MAX_METADATA, Metadata};
use crate::net::live::{MetadataBytes, MetadataStatus, Request};
use std::io::{Read, Write};

/// A trace of a live session.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The stream of its metadata, once that was announced.
    pub(super) metadata_stream: Option<u64>,
    /// The last well-formed metadata.
    pub(super) metadata: Option<Metadata>,
    /// Why there is none; it may still end within a declaration.
    pub(super) reason: Option<String>,
    /// Whether no more metadata will come.
    pub(super) has_ended: bool,
    /// Whether more metadata may have come.
    pub(super) is_stale: bool,
    bytes: Vec<u8>,
}

impl Trace {
    /// Fetches metadata until there is none left.
    pub(super) fn fetch<S: Read + Write>(&mut self, relay: &mut Relay<S>) -> Result<(), LiveError> {
        let Some(stream) = self.metadata_stream.filter(|_| !self.has_ended) else { return Ok(()) };
        let known = self.bytes.len();
        loop {
            let owned = |bytes: &[u8]| {
                let reply = MetadataBytes::decode(bytes)?;
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
                Ok(metadata) => (self.metadata, self.reason) = (Some(metadata), None),
                Err(error) => self.reason = Some(error.to_string()),
            }
        }
        Ok(())
    }

    /// Nanoseconds since the epoch of a time of the clock of a stream class; of any clock of the trace, if the class is not known.
    pub(super) fn nanoseconds(&self, class: u64, cycles: u64) -> Option<i64> {
        let metadata = self.metadata.as_ref()?;
        let class = metadata.stream(class).or_else(|| metadata.streams().next())?;
        Some(metadata.nanoseconds(class, cycles))
    }
}
