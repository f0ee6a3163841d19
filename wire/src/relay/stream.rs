//! `ADD_STREAM`.

use super::MINOR_WITH_CHUNKS;
use crate::fields::{Reader, Short, Writer};

/// `ADD_STREAM`: announces a stream of packets, or the metadata of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddStream {
    /// The name of its file; [`METADATA_CHANNEL`](super::METADATA_CHANNEL) for the metadata.
    pub channel: String,
    /// Its directory below the session's directory. All streams of a trace have the same. Before minor version 11 it begins with the directory of the
    /// session.
    pub path: String,
    /// The largest size of a file in bytes; 0: no limit.
    pub file_size: u64,
    /// Number of files kept if there is a maximum size; 0: all.
    pub file_count: u64,
    /// The chunk to which the stream belongs; ignored in favour of the current one. From minor 11 on.
    pub chunk: u64,
}

/// Sizes of the fields before minor 11.
const CHANNEL: usize = 264;
const PATH: usize = 4096;

impl AddStream {
    pub(super) fn read(fields: &mut Reader<'_>, minor: u32) -> Result<Self, Short> {
        if minor < MINOR_WITH_CHUNKS {
            let (channel, path) = (fields.padded(CHANNEL)?, fields.padded(PATH)?);
            return Ok(Self { channel, path, file_size: fields.u64()?, file_count: fields.u64()?, chunk: 0 });
        }
        let [channel, path] = [fields.u32()?, fields.u32()?];
        let (file_size, file_count, chunk) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (channel, path) = (fields.padded(channel as usize)?, fields.padded(path as usize)?);
        Ok(Self { channel, path, file_size, file_count, chunk })
    }

    pub(super) fn write(&self, to: Writer<'_>, minor: u32) {
        if minor < MINOR_WITH_CHUNKS {
            let to = to.padded(&self.channel, CHANNEL).padded(&self.path, PATH);
            to.u64(self.file_size).u64(self.file_count);
            return;
        }
        let to = to.u32(self.channel.len() as u32 + 1).u32(self.path.len() as u32 + 1);
        let to = to.u64(self.file_size).u64(self.file_count).u64(self.chunk);
        to.terminated(&self.channel).terminated(&self.path);
    }
}
