//! VERSION and `CREATE_SESSION`.

use super::MINOR_WITH_CHUNKS;
use crate::fields::{Reader, Short, Writer, layout};

/// The protocol version of one side, sent in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// 2.
    pub major: u32,
    /// The lower one of both sides selects the layouts.
    pub minor: u32,
}

impl Version {
    pub(super) const SIZE: usize = 8;
}

layout!(Version { major, minor });

/// `CREATE_SESSION`: once for each control connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateSession {
    /// The name of the session.
    pub name: String,
    /// The name of the sender's host.
    pub host: String,
    /// The output directory below the host's directory; if empty, one is made from the name and the time. From minor version 11 on.
    pub base_path: String,
    /// The period of live reading in microseconds; 0 if the session cannot be viewed while it is recorded.
    pub live_timer: u32,
    /// The session has only snapshots.
    pub snapshot: bool,
    /// True if the name already contains the time of creation. From minor version 11 on.
    pub name_has_time: bool,
    /// Identifies the sending process; not zero. From minor version 11 on.
    pub sender: [u8; 16],
    /// The sender's number for the session. From minor 11 on.
    pub id: u64,
    /// Seconds since the epoch. From minor 11 on.
    pub creation_time: u64,
    /// The current chunk, if another connection of the same session has created it. From minor version 11 on.
    pub current_chunk: Option<u64>,
}

/// Sizes of the fields before minor 11.
const NAME: usize = 255;
const HOST: usize = 64;

impl CreateSession {
    pub(super) fn read(fields: &mut Reader<'_>, minor: u32) -> Result<Self, Short> {
        if minor < MINOR_WITH_CHUNKS {
            let (name, host) = (fields.padded(NAME)?, fields.padded(HOST)?);
            return Ok(Self { name, host, live_timer: fields.u32()?, snapshot: fields.u32()? != 0, ..Self::default() });
        }
        let [name, host, base_path] = [fields.u32()?, fields.u32()?, fields.u32()?];
        let (live_timer, snapshot, name_has_time) = (fields.u32()?, fields.u8()? != 0, fields.u8()? != 0);
        let (sender, id, creation_time) = (fields.array()?, fields.u64()?, fields.u64()?);
        let (has_chunk, chunk) = (fields.u8()? != 0, fields.u64()?);
        Ok(Self {
            name: fields.padded(name as usize)?,
            host: fields.padded(host as usize)?,
            base_path: fields.padded(base_path as usize)?,
            live_timer,
            snapshot,
            name_has_time,
            sender,
            id,
            creation_time,
            current_chunk: has_chunk.then_some(chunk),
        })
    }

    pub(super) fn write(&self, to: Writer<'_>, minor: u32) {
        if minor < MINOR_WITH_CHUNKS {
            let to = to.padded(&self.name, NAME).padded(&self.host, HOST);
            to.u32(self.live_timer).u32(self.snapshot.into());
            return;
        }
        let texts = [&self.name, &self.host, &self.base_path];
        let to = texts.iter().fold(to, |to, text| to.u32(text.len() as u32 + 1)).u32(self.live_timer);
        let to = to.u8(self.snapshot.into()).u8(self.name_has_time.into()).bytes(&self.sender);
        let to = to.u64(self.id).u64(self.creation_time);
        let to = to.u8(self.current_chunk.is_some().into()).u64(self.current_chunk.unwrap_or_default());
        texts.iter().fold(to, |to, text| to.terminated(text));
    }
}
