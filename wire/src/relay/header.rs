//! The headers of commands and of packets.

use crate::fields::{Fields, Reader, layout, to_array};

/// The header before the payload of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlHeader {
    /// For routing, which was never implemented. 0; ignored.
    pub circuit_id: u64,
    /// Size of the payload in bytes. Not validated: compare it with a limit before allocating.
    pub size: u64,
    /// The number of the command.
    pub command: u32,
    /// 0; ignored.
    pub version: u32,
}

impl ControlHeader {
    /// Its size in bytes.
    pub const SIZE: usize = 24;

    /// Decodes a header.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Self {
        // All fields are present.
        Self::read(&mut Reader::new(bytes)).unwrap_or_default()
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        to_array(|to| self.write(to))
    }
}

layout! {
    ControlHeader { circuit_id, size, command, version }
    DataHeader { circuit_id, handle, sequence, size, padding }
}

/// The header before each packet on a data connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataHeader {
    /// For routing, which was never implemented. 0; ignored.
    pub circuit_id: u64,
    /// The handle of the stream, from the answer to `ADD_STREAM`.
    pub handle: u64,
    /// The number of the packet in its stream, which pairs it with its index. LTTng's sender counts from 0.
    pub sequence: u64,
    /// Number of packet bytes that follow.
    pub size: u32,
    /// Number of zero bytes that the receiver appends. The sum of both is the packet's size.
    pub padding: u32,
}

impl DataHeader {
    /// Its size in bytes.
    pub const SIZE: usize = 32;

    /// Decodes a header.
    pub fn decode(bytes: &[u8; Self::SIZE]) -> Self {
        // All fields are present.
        Self::read(&mut Reader::new(bytes)).unwrap_or_default()
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        to_array(|to| self.write(to))
    }
}
