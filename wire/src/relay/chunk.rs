//! Commands about trace chunks, which are the parts of a rotated trace.

use crate::DecodeError;
use crate::fields::{Reader, Short, Writer};

/// `CREATE_TRACE_CHUNK`: new files go into this chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateChunk {
    /// Its number; 0 for the first.
    pub id: u64,
    /// Seconds since the epoch.
    pub creation_time: u64,
    /// The name of its directory. If `None`, the first chunk is in the directory of the session, and the others are named after their times.
    pub name: Option<String>,
}

impl CreateChunk {
    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, Short> {
        let (id, creation_time, length) = (fields.u64()?, fields.u64()?, fields.u32()?);
        let name = fields.padded(length as usize)?;
        Ok(Self { id, creation_time, name: (length > 0).then_some(name) })
    }

    pub(super) fn write(&self, to: Writer<'_>) {
        let to = to.u64(self.id).u64(self.creation_time);
        match &self.name {
            None => to.u32(0),
            Some(name) => to.u32(name.len() as u32 + 1).terminated(name),
        };
    }
}

/// The fate of a closed chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkEnd {
    /// It is moved to the archived chunks.
    Archive,
    /// It is left in place.
    Keep,
    /// It is deleted.
    Delete,
}

/// `CLOSE_TRACE_CHUNK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseChunk {
    /// Its number.
    pub id: u64,
    /// Seconds since the epoch.
    pub close_time: u64,
    /// Its fate; `None` at the end of a session.
    pub end: Option<ChunkEnd>,
}

impl CloseChunk {
    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Result<Self, DecodeError>, Short> {
        let (id, close_time) = (fields.u64()?, fields.u64()?);
        let end = match (fields.u8()? != 0, fields.u32()?) {
            (false, _) => None,
            (true, 0) => Some(ChunkEnd::Archive),
            (true, 1) => Some(ChunkEnd::Keep),
            (true, 2) => Some(ChunkEnd::Delete),
            (true, number) => return Ok(Err(DecodeError::Number { what: "end of a trace chunk", number })),
        };
        Ok(Ok(Self { id, close_time, end }))
    }

    pub(super) fn write(&self, to: Writer<'_>) {
        let number = match self.end {
            None | Some(ChunkEnd::Archive) => 0,
            Some(ChunkEnd::Keep) => 1,
            Some(ChunkEnd::Delete) => 2,
        };
        to.u64(self.id).u64(self.close_time).u8(self.end.is_some().into()).u32(number);
    }
}

/// `ROTATE_STREAMS`: packets of these streams, starting with the given ones, belong to the new chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotateStreams {
    /// The new chunk; `None` at the end of a session.
    pub chunk: Option<u64>,
    /// For each stream its handle, and the tracer's number of the first packet that belongs to the new chunk.
    pub streams: Vec<(u64, u64)>,
}

impl RotateStreams {
    /// LTTng's sender has 3 or 7 bytes of uninitialised padding before the chunk, or none, depending on the size of the payload.
    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, Short> {
        let (count, has_chunk) = (fields.u32()? as usize, fields.u8()? != 0);
        let size = count.checked_mul(16).and_then(|size| size.checked_add(8)).ok_or(Short)?;
        let padding = match fields.len().checked_sub(size).ok_or(Short)? {
            0..3 => 0,
            3..7 => 3,
            _ => 7,
        };
        fields.bytes(padding)?;
        let chunk = fields.u64()?;
        let streams = (0..count).map(|_| Ok((fields.u64()?, fields.u64()?))).collect::<Result<_, _>>()?;
        Ok(Self { chunk: has_chunk.then_some(chunk), streams })
    }

    pub(super) fn write(&self, to: Writer<'_>) {
        let to = to.u32(self.streams.len() as u32).u8(self.chunk.is_some().into()).u64(self.chunk.unwrap_or_default());
        self.streams.iter().fold(to, |to, (handle, number)| to.u64(*handle).u64(*number));
    }
}
