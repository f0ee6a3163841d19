//! What is in batches: decodes their packets by the metadata that came before them.

use super::report::EventBatch;
use super::wire::{Malformed, PacketHeader};
use crate::error::ReadError;
use crate::event::Event;
use crate::loss::Damage;
use crate::metadata::Metadata;
use crate::packet::PacketDecoder;
use std::path::PathBuf;

/// Decodes batches.
#[derive(Debug, Default)]
pub struct BatchDecoder {
    text: Vec<u8>,
    /// What the text says, or said when it was last well formed; and how long it was when it was last looked at.
    metadata: Option<Metadata>,
    seen: usize,
}

/// A packet of a batch, and the events in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchPacket<'a> {
    /// Its header.
    pub header: PacketHeader,
    /// All its bytes, header included.
    pub bytes: &'a [u8],
    /// Its events. One that cannot be decoded ends them.
    pub events: PacketDecoder<'a>,
}

impl BatchDecoder {
    /// Adds what the metadata has grown by. As long as it ends in the middle of a declaration, what was there before holds.
    pub fn grow(&mut self, metadata: &[u8]) {
        self.text.extend_from_slice(metadata);
    }

    /// The metadata so far.
    ///
    /// # Errors
    ///
    /// [`ReadError::Metadata`] if it is not well formed, and was not when it was last asked for either.
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

    /// The packets of a batch. One that is malformed ends them.
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
            offset += bytes.len() as u64;
            let events = PacketDecoder::new(&metadata, bytes)?;
            Ok(BatchPacket { header, bytes, events })
        }))
    }

    /// Gives each event of a batch to `each`, and tells how many there were.
    ///
    /// # Errors
    ///
    /// [`ReadError::Metadata`] as above. What is damaged in a batch whose checksum was right is the server's fault; `damaged` is
    /// told, and the rest of that packet is left out.
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
                        each(event);
                    }
                    Err(damage) => damaged(&damage),
                }
            }
        }
        Ok(count)
    }
}

fn damage(offset: u64, malformed: Malformed) -> Damage {
    let reason = format!("there is no packet where one should be: {malformed}");
    Damage { file: PathBuf::from("batch"), offset, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_described_stays_described_while_the_metadata_grows() {
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
