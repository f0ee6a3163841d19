//! Decodes the packets in batches with the metadata that preceded them.

use super::report::EventBatch;
use crate::error::ReadError;
use crate::event::Event;
use crate::loss::Damage;
use crate::metadata::Metadata;
use crate::packet::PacketDecoder;
use crate::value::Value;
use std::path::PathBuf;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::udp::{DecodeError, INGEST_EVENT};

/// Decodes batches.
#[derive(Debug, Default)]
pub struct BatchDecoder {
    text: Vec<u8>,
    /// The last well-formed metadata, and the length of the text when it was last parsed.
    metadata: Option<Metadata>,
    seen: usize,
}

/// A packet of a batch, and the events in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchPacket<'a> {
    /// Its header.
    pub header: PacketHeader,
    /// Its bytes, header included.
    pub bytes: &'a [u8],
    /// Its events, up to the first that cannot be decoded.
    pub events: PacketDecoder<'a>,
}

impl BatchDecoder {
    /// Appends to the metadata. While it ends within a declaration, the previous metadata stays valid.
    pub fn grow(&mut self, metadata: &[u8]) {
        self.text.extend_from_slice(metadata);
    }

    /// The metadata so far.
    ///
    /// # Errors
    ///
    /// [`ReadError::Metadata`] if it is not well formed, and never was.
    pub fn metadata(&mut self) -> Result<&Metadata, ReadError> {
        let known = self.metadata.take();
        let grown = std::mem::replace(&mut self.seen, self.text.len()) < self.text.len();
        let parsed = match known {
            Some(known) if grown => Metadata::parse(&self.text).unwrap_or(known),
            Some(known) => known,
            None => Metadata::parse(&self.text)?,
        };
        Ok(self.metadata.insert(parsed))
    }

    /// The packets of a batch, up to the first malformed one.
    ///
    /// # Errors
    ///
    /// As [`BatchDecoder::metadata`].
    pub fn packets<'a>(
        &mut self,
        batch: &'a EventBatch,
    ) -> Result<impl Iterator<Item = Result<BatchPacket<'a>, Damage>> + use<'a>, ReadError> {
        let metadata = self.metadata()?.clone();
        let mut offset = 0;
        Ok(batch.packets().map(move |packet| {
            let (header, bytes) = packet.map_err(|malformed| damage(offset, malformed))?;
            let at = offset;
            offset += bytes.len() as u64;
            let here = |damage: Damage| Damage { offset: at + damage.offset, ..damage };
            let events = PacketDecoder::new(&metadata, bytes).map_err(here)?;
            Ok(BatchPacket { header, bytes, events })
        }))
    }

    /// Calls `each` with each event of a batch, and returns their number. Ingested messages that are UTF-8 are text in the event, as in the
    /// legacy layout.
    ///
    /// # Errors
    ///
    /// [`ReadError::Metadata`] as above. Damage in a batch with a correct checksum is a fault of the server: it is reported to `damaged`,
    /// and the rest of that packet is left out.
    pub fn events(
        &mut self,
        batch: &EventBatch,
        mut each: impl FnMut(Event),
        mut damaged: impl FnMut(&Damage),
    ) -> Result<u64, ReadError> {
        let mut count = 0;
        for packet in self.packets(batch)? {
            let events = match packet {
                Ok(packet) => packet.events,
                Err(damage) => {
                    damaged(&damage);
                    continue;
                }
            };
            for event in events {
                match event {
                    Ok(event) => {
                        count += 1;
                        each(with_text(event));
                    }
                    Err(damage) => damaged(&damage),
                }
            }
        }
        Ok(count)
    }
}

/// An ingested message that is UTF-8, with its bytes as text.
fn with_text(mut event: Event) -> Event {
    if event.name() == INGEST_EVENT {
        for value in event.fields.iter_mut().flat_map(|fields| &mut fields.values) {
            match value {
                Value::Bytes(bytes, _) if is_text(bytes) => *value = Value::String(std::mem::take(bytes)),
                _ => {}
            }
        }
    }
    event
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(|c: char| c.is_control() && c != '\t'))
}

fn damage(offset: u64, malformed: DecodeError) -> Damage {
    let reason = format!("a packet should start here: {malformed}");
    Damage { file: PathBuf::from("batch"), offset, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_events_stay_known_while_the_metadata_grows() {
        let mut decoder = BatchDecoder::default();
        let class = |id| format!("stream {{ id = {id}; }};\n");
        decoder.grow(
            format!("/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = le; }};\n{}", class(0)).as_bytes(),
        );
        let classes = |decoder: &mut BatchDecoder| decoder.metadata().expect("metadata").streams().count();
        assert_eq!(classes(&mut decoder), 1);
        let more = class(1);
        let (half, rest) = more.as_bytes().split_at(9);
        decoder.grow(half);
        assert_eq!([classes(&mut decoder), classes(&mut decoder)], [1, 1]);
        decoder.grow(rest);
        assert_eq!(classes(&mut decoder), 2);
    }
}
