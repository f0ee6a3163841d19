//! `ADD_STREAM`.

use super::MINOR_WITH_CHUNKS;
use super::fields::{payload, terminated, texts};
use crate::Malformed;
use crate::bytes::put_text;

/// `ADD_STREAM`: announces a stream of packets, or the metadata of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddStream {
    /// The name of its file; [`METADATA_CHANNEL`](super::METADATA_CHANNEL) for the metadata.
    pub channel: String,
    /// Its directory below that of the session. All streams of a trace have the same. Before minor 11 it begins with the directory of the
    /// session.
    pub path: String,
    /// The largest size of a file in bytes; 0: no limit.
    pub file_size: u64,
    /// How many files are kept if there is a largest size; 0: all.
    pub file_count: u64,
    /// The chunk to which the stream belongs; ignored in favour of the current one. From minor 11 on.
    pub chunk: u64,
}

/// The fixed part from minor 11 on.
const FIXED: usize = 32;
/// Sizes of the fields before minor 11.
const CHANNEL: usize = 264;
const PATH: usize = 4096;

impl AddStream {
    pub(super) fn decode(bytes: &[u8], minor: u32, kind: u32) -> Result<Self, Malformed> {
        if minor < MINOR_WITH_CHUNKS {
            let fields = payload(bytes, CHANNEL + PATH + 16, kind)?;
            return Ok(Self {
                channel: fields.text(0, CHANNEL),
                path: fields.text(CHANNEL, PATH),
                file_size: fields.u64(CHANNEL + PATH),
                file_count: fields.u64(CHANNEL + PATH + 8),
                chunk: 0,
            });
        }
        let fields = payload(bytes, FIXED, kind)?;
        let [channel, path] = texts(&bytes[FIXED..], [fields.u32(0), fields.u32(4)], kind)?;
        Ok(Self { channel, path, file_size: fields.u64(8), file_count: fields.u64(16), chunk: fields.u64(24) })
    }

    pub(super) fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        if minor < MINOR_WITH_CHUNKS {
            put_text(out, &self.channel, CHANNEL);
            put_text(out, &self.path, PATH);
            out.extend_from_slice(&self.file_size.to_be_bytes());
            out.extend_from_slice(&self.file_count.to_be_bytes());
            return;
        }
        out.extend_from_slice(&(self.channel.len() as u32 + 1).to_be_bytes());
        out.extend_from_slice(&(self.path.len() as u32 + 1).to_be_bytes());
        for number in [self.file_size, self.file_count, self.chunk] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        terminated(&self.channel, out);
        terminated(&self.path, out);
    }
}
