//! Commands about trace chunks: the parts into which a rotation divides a trace.

use super::fields::{payload, terminated, texts};
use crate::Malformed;
use crate::bytes::Fields;

/// `CREATE_TRACE_CHUNK`: new files go into this chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateChunk {
    /// Its number; 0 for the first.
    pub id: u64,
    /// Seconds since the epoch.
    pub creation_time: u64,
    /// The name of its directory; `None`: the first chunk is in the directory of the session, others are named after their times.
    pub name: Option<String>,
}

impl CreateChunk {
    pub(super) fn decode(bytes: &[u8], kind: u32) -> Result<Self, Malformed> {
        let fields = payload(bytes, 20, kind)?;
        let length = fields.u32(16);
        let [name] = texts(&bytes[20..], [length], kind)?;
        let name = (length > 0).then_some(name);
        Ok(Self { id: fields.u64(0), creation_time: fields.u64(8), name })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.creation_time.to_be_bytes());
        let length = self.name.as_ref().map_or(0, |name| name.len() as u32 + 1);
        out.extend_from_slice(&length.to_be_bytes());
        self.name.iter().for_each(|name| terminated(name, out));
    }
}

/// What happens to a chunk that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkEnd {
    /// It is moved to the archived chunks.
    Archive,
    /// It stays where it is.
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
    /// What happens to it; `None` at the end of a session.
    pub end: Option<ChunkEnd>,
}

impl CloseChunk {
    pub(super) fn decode(bytes: &[u8], kind: u32) -> Result<Self, Malformed> {
        let fields = payload(bytes, 21, kind)?;
        let end = match (bytes[16] != 0, fields.u32(17)) {
            (false, _) => None,
            (true, 0) => Some(ChunkEnd::Archive),
            (true, 1) => Some(ChunkEnd::Keep),
            (true, 2) => Some(ChunkEnd::Delete),
            (true, number) => return Err(Malformed::Number { what: "end of a trace chunk", number }),
        };
        Ok(Self { id: fields.u64(0), close_time: fields.u64(8), end })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.close_time.to_be_bytes());
        out.push(u8::from(self.end.is_some()));
        let number: u32 = match self.end {
            None | Some(ChunkEnd::Archive) => 0,
            Some(ChunkEnd::Keep) => 1,
            Some(ChunkEnd::Delete) => 2,
        };
        out.extend_from_slice(&number.to_be_bytes());
    }
}

/// `ROTATE_STREAMS`: packets of these streams from the given ones on belong to the new chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotateStreams {
    /// The new chunk; `None` at the end of a session.
    pub chunk: Option<u64>,
    /// For each stream its handle, and the tracer's number of the first packet that belongs to the new chunk.
    pub streams: Vec<(u64, u64)>,
}

impl RotateStreams {
    /// The count and whether there is a chunk; padding follows.
    const BEFORE_PADDING: usize = 5;

    /// The stock sender has 3 or 7 bytes of padding, which it does not initialise, or none: the size of the payload says which.
    pub(super) fn decode(bytes: &[u8], kind: u32) -> Result<Self, Malformed> {
        let fields = payload(bytes, Self::BEFORE_PADDING + 8, kind)?;
        let short = Malformed::Short { kind, size: bytes.len() as u64 };
        let size = (fields.u32(0) as usize).checked_mul(16).ok_or(short)?;
        let padding = bytes.len() - Self::BEFORE_PADDING - 8;
        let padding = match padding.checked_sub(size).ok_or(short)? {
            0..3 => 0,
            3..7 => 3,
            _ => 7,
        };
        let chunk_at = Self::BEFORE_PADDING + padding;
        let chunk = (bytes[4] != 0).then(|| Fields(bytes).u64(chunk_at));
        let streams = bytes[chunk_at + 8..][..size].chunks_exact(16);
        let streams = streams.map(Fields).map(|stream| (stream.u64(0), stream.u64(8))).collect();
        Ok(Self { chunk, streams })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.streams.len() as u32).to_be_bytes());
        out.push(u8::from(self.chunk.is_some()));
        out.extend_from_slice(&self.chunk.unwrap_or_default().to_be_bytes());
        for (handle, number) in &self.streams {
            out.extend_from_slice(&handle.to_be_bytes());
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}
