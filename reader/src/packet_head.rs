//! The header of a packet as the tracer writes it, field by field.

use crate::fields::Fields;

/// Size of the header in bytes.
pub(crate) const SIZE: usize = 96;
/// The first four bytes of a packet, those of CTF.
pub(crate) const MAGIC: u32 = 0xC1FC_1FC1;
/// Offset of `content_size`.
pub(crate) const CONTENT: usize = 48;
/// Offset of `packet_size`.
pub(crate) const PACKET_SIZE: usize = 56;

/// The header of a packet. `content` and `size` are in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHead {
    pub(crate) magic: u32,
    pub(crate) uuid: [u8; 16],
    pub(crate) class: u32,
    pub(crate) instance: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) content: u64,
    pub(crate) size: u64,
    pub(crate) sequence: u64,
    pub(crate) discarded: u64,
    pub(crate) tid: u32,
    pub(crate) before: u64,
}

impl PacketHead {
    /// The header of an empty packet, the first of its stream, at `time`.
    pub(crate) const fn empty(uuid: [u8; 16], class: u32, instance: u64, time: u64) -> Self {
        let bits = SIZE as u64 * 8;
        Self {
            magic: MAGIC,
            uuid,
            class,
            instance,
            begin: time,
            end: time,
            content: bits,
            size: bits,
            sequence: 0,
            discarded: 0,
            tid: 0,
            before: 0,
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let fields = Fields(bytes);
        Self {
            magic: fields.u32(0),
            uuid: fields.array(4),
            class: fields.u32(20),
            instance: fields.u64(24),
            begin: fields.u64(32),
            end: fields.u64(40),
            content: fields.u64(CONTENT),
            size: fields.u64(PACKET_SIZE),
            sequence: fields.u64(64),
            discarded: fields.u64(72),
            tid: fields.u32(80),
            before: fields.u64(88),
        }
    }

    pub(crate) fn bytes(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.magic.to_le_bytes());
        put(4, &self.uuid);
        put(20, &self.class.to_le_bytes());
        put(24, &self.instance.to_le_bytes());
        let numbers = [self.begin, self.end, self.content, self.size, self.sequence, self.discarded];
        for (index, number) in numbers.into_iter().enumerate() {
            put(32 + 8 * index, &number.to_le_bytes());
        }
        put(80, &self.tid.to_le_bytes());
        put(88, &self.before.to_le_bytes());
        out
    }
}

/// Overwrites the header of a packet.
pub(crate) fn put(bytes: &mut [u8], head: &PacketHead) {
    if let Some(place) = bytes.get_mut(..SIZE) {
        place.copy_from_slice(&head.bytes());
    }
}
