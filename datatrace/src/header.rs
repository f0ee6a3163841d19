//! The header of a dt file (the original's `dthdr`): twenty bytes that describe the rest of the file.

use thiserror::Error;

/// Size of the header in bytes.
pub const HEADER_SIZE: usize = 20;
/// Bytes before the entries of a slot, in a framed file.
pub const FRAME_SIZE: usize = 8;

/// The layout of entries in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1, as in the original: the slots are one stream of bytes, and an entry may span two slots.
    ByteStream,
    /// 2: no entry spans two slots, and each slot begins with its used length and a checksum.
    Framed,
}

impl Version {
    /// The number in the file.
    pub fn number(self) -> i32 {
        match self {
            Self::ByteStream => 1,
            Self::Framed => 2,
        }
    }

    /// Bytes before the entries of a slot: 0 or [`FRAME_SIZE`].
    pub fn frame_size(self) -> usize {
        match self {
            Self::ByteStream => 0,
            Self::Framed => FRAME_SIZE,
        }
    }
}

/// The slot that was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBuffer {
    /// Its number, from 0.
    pub index: u32,
    /// Its used bytes, frame included; 0 while it is being overwritten.
    pub size: u32,
}

/// The header of a dt file (the original's `dthdr`). It is always consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub(crate) version: Version,
    pub(crate) buffer_size: u32,
    pub(crate) number_buffers: u32,
    pub(crate) last: Option<LastBuffer>,
}

/// Twenty bytes are not the header of a dt file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset}: {reason}")]
#[non_exhaustive]
pub struct HeaderError {
    /// Offset of the invalid field, in bytes.
    pub offset: u64,
    /// The fault.
    pub reason: String,
}

impl Header {
    /// The layout of entries in slots (`version`).
    pub fn version(&self) -> Version {
        self.version
    }

    /// Bytes of one slot (`bufferSize`).
    pub fn buffer_size(&self) -> u32 {
        self.buffer_size
    }

    /// The number of slots in the file (`numberBuffers`).
    pub fn number_buffers(&self) -> u32 {
        self.number_buffers
    }

    /// The slot that was written last (`lastBufferIdx`, `lastBufferSize`); `None` before the first.
    pub fn last(&self) -> Option<LastBuffer> {
        self.last
    }

    /// The slot that is being overwritten, if any: its bytes are not valid.
    pub fn in_progress(&self) -> Option<u32> {
        self.last.filter(|last| last.size == 0).map(|last| last.index)
    }

    /// Offset of slot `index` in the file, in bytes.
    pub fn slot_offset(&self, index: u32) -> u64 {
        HEADER_SIZE as u64 + u64::from(index) * u64::from(self.buffer_size)
    }

    /// Offset of the postambles in the file, in bytes. The original's `dtPostAmbleLocation`.
    pub fn postamble_location(&self) -> u64 {
        self.slot_offset(self.number_buffers)
    }

    /// The slot with the oldest entries; `None` if there are no slots.
    pub fn oldest(&self) -> Option<u32> {
        if self.number_buffers == 0 {
            return None;
        }
        let next = self.last.map_or(0, |last| u64::from(last.index) + 1);
        Some((next % u64::from(self.number_buffers)) as u32)
    }

    /// The header as bytes of the file.
    pub fn to_bytes(&self) -> [u8; HEADER_SIZE] {
        let (index, size) = self.last.map_or((-1, 0), |last| (last.index.cast_signed(), last.size.cast_signed()));
        let fields =
            [self.version.number(), self.buffer_size.cast_signed(), self.number_buffers.cast_signed(), index, size];
        let mut bytes = [0; HEADER_SIZE];
        for (place, field) in bytes.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads the header, and checks its consistency.
    ///
    /// # Errors
    ///
    /// The first invalid field.
    pub fn from_bytes(bytes: &[u8; HEADER_SIZE]) -> Result<Self, HeaderError> {
        let [version, buffer_size, number_buffers, index, size] = fields(bytes);
        let version = match version {
            1 => Version::ByteStream,
            2 => Version::Framed,
            other => return wrong(0, version_reason(other)),
        };
        let frame = version.frame_size() as u32;
        if buffer_size <= frame.cast_signed() {
            return wrong(4, format!("bufferSize is {buffer_size}; it must be more than {frame}"));
        }
        if number_buffers < 0 {
            return wrong(8, format!("numberBuffers is {number_buffers}; it cannot be negative"));
        }
        if index < -1 || index >= number_buffers {
            let most = number_buffers - 1;
            return wrong(
                12,
                format!("lastBufferIdx is {index}; with {number_buffers} slots it must be from -1 to {most}"),
            );
        }
        let last = (index >= 0).then(|| LastBuffer { index: index.cast_unsigned(), size: size.cast_unsigned() });
        if last.is_none() && version == Version::ByteStream && number_buffers > 0 {
            return wrong(12, format!("lastBufferIdx is -1, with {number_buffers} slots in a byte stream"));
        }
        let used = 1 + frame..=buffer_size.cast_unsigned();
        match last {
            None if size != 0 => return wrong(16, format!("lastBufferSize is {size}, and no slot is written")),
            Some(last) if last.size != 0 && !used.contains(&last.size) => {
                let (start, end) = (used.start(), used.end());
                return wrong(16, format!("lastBufferSize is {size}; it must be 0, or from {start} to {end}"));
            }
            _ => {}
        }
        Ok(Self {
            version,
            buffer_size: buffer_size.cast_unsigned(),
            number_buffers: number_buffers.cast_unsigned(),
            last,
        })
    }
}

fn fields(bytes: &[u8; HEADER_SIZE]) -> [i32; 5] {
    let mut fields = [0; 5];
    for (field, place) in fields.iter_mut().zip(bytes.chunks_exact(4)) {
        *field = i32::from_le_bytes([place[0], place[1], place[2], place[3]]);
    }
    fields
}

fn version_reason(version: i32) -> String {
    if matches!(version.swap_bytes(), 1 | 2) {
        return "the numbers are big-endian: a file of another program, whose byte order is not read here".to_owned();
    }
    format!("this is no dt file: its version is {version}, and 1 and 2 are known")
}

fn wrong<T>(offset: u64, reason: String) -> Result<T, HeaderError> {
    Err(HeaderError { offset, reason })
}
