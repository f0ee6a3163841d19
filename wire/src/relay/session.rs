//! VERSION and `CREATE_SESSION`.

use super::MINOR_WITH_CHUNKS;
use super::fields::{payload, terminated, texts};
use crate::Malformed;
use crate::bytes::{Fields, put_text};

/// The version of the protocol: in both directions, each side's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// 2.
    pub major: u32,
    /// The lesser of both sides' selects the layouts.
    pub minor: u32,
}

impl Version {
    pub(super) const SIZE: usize = 8;

    pub(super) fn decode(fields: Fields<'_>) -> Self {
        Self { major: fields.u32(0), minor: fields.u32(4) }
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.major.to_be_bytes());
        out.extend_from_slice(&self.minor.to_be_bytes());
    }
}

/// `CREATE_SESSION`: once for each control connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateSession {
    /// The name of the session.
    pub name: String,
    /// The name of the sender's host.
    pub host: String,
    /// The output directory below that of the host; empty: one is made from the name and the time. From minor 11 on.
    pub base_path: String,
    /// The period of live reading in microseconds; 0: the session cannot be viewed while it is recorded.
    pub live_timer: u32,
    /// The session has only snapshots.
    pub snapshot: bool,
    /// The name contains the time of creation already. From minor 11 on.
    pub name_has_time: bool,
    /// Identifies the sending process; not zero. From minor 11 on.
    pub sender: [u8; 16],
    /// The sender's number for the session. From minor 11 on.
    pub id: u64,
    /// Seconds since the epoch. From minor 11 on.
    pub creation_time: u64,
    /// The current chunk, if another connection of the same session has created it. From minor 11 on.
    pub current_chunk: Option<u64>,
}

/// The fixed part from minor 11 on.
const FIXED: usize = 59;
/// Sizes of the fields before minor 11.
const NAME: usize = 255;
const HOST: usize = 64;

impl CreateSession {
    pub(super) fn decode(bytes: &[u8], minor: u32, kind: u32) -> Result<Self, Malformed> {
        if minor < MINOR_WITH_CHUNKS {
            let fields = payload(bytes, NAME + HOST + 8, kind)?;
            return Ok(Self {
                name: fields.text(0, NAME),
                host: fields.text(NAME, HOST),
                live_timer: fields.u32(NAME + HOST),
                snapshot: fields.u32(NAME + HOST + 4) != 0,
                ..Self::default()
            });
        }
        let fields = payload(bytes, FIXED, kind)?;
        let lengths = [fields.u32(0), fields.u32(4), fields.u32(8)];
        let [name, host, base_path] = texts(&bytes[FIXED..], lengths, kind)?;
        let mut sender = [0; 16];
        sender.copy_from_slice(&bytes[18..34]);
        Ok(Self {
            name,
            host,
            base_path,
            live_timer: fields.u32(12),
            snapshot: bytes[16] != 0,
            name_has_time: bytes[17] != 0,
            sender,
            id: fields.u64(34),
            creation_time: fields.u64(42),
            current_chunk: (bytes[50] != 0).then(|| fields.u64(51)),
        })
    }

    pub(super) fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        if minor < MINOR_WITH_CHUNKS {
            put_text(out, &self.name, NAME);
            put_text(out, &self.host, HOST);
            out.extend_from_slice(&self.live_timer.to_be_bytes());
            out.extend_from_slice(&u32::from(self.snapshot).to_be_bytes());
            return;
        }
        let texts = [&self.name, &self.host, &self.base_path];
        for text in texts {
            out.extend_from_slice(&(text.len() as u32 + 1).to_be_bytes());
        }
        out.extend_from_slice(&self.live_timer.to_be_bytes());
        out.extend([u8::from(self.snapshot), u8::from(self.name_has_time)]);
        out.extend_from_slice(&self.sender);
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.creation_time.to_be_bytes());
        out.push(u8::from(self.current_chunk.is_some()));
        out.extend_from_slice(&self.current_chunk.unwrap_or_default().to_be_bytes());
        for text in texts {
            terminated(text, out);
        }
    }
}
