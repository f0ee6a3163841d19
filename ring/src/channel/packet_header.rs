//! The header of a packet: its layout, which is defined only here, and its value. A packet in memory is a CTF 1.8 packet, so that
//! sinks write it without conversion.
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic u32, uuid 16 bytes, stream class id u32, stream instance id u64 |
//! | 32 | `timestamp_begin`, `timestamp_end`, `content_size`, `packet_size`, `packet_seq_num`, `events_discarded` (u64 each) |
//! | 80 | tid u32 |
//! | 84 | checksum u32, in the alignment before the next field: 0 until the packet [leaves its ring](super::OpenChannel::checksum_with) |
//! | 88 | `events_before` u64: records written to this stream before this packet |
//! | 96 | records |
//!
//! All fields are little-endian. Times are in nanoseconds, sizes in bits. [`packet`](super::packet) has the stores by which an owner writes a header
//! into its ring, and readers in other processes copy it from there; both then use the value.

/// The first four bytes of a packet.
pub const PACKET_MAGIC: u32 = 0xC1FC_1FC1;
/// The size of the header in bytes, which is the offset of the first record.
pub const HEADER_SIZE: usize = 96;

const UUID: usize = 4;
const CLASS: usize = 20;
pub(crate) const INSTANCE: usize = 24;
pub(crate) const TIMESTAMP_BEGIN: usize = 32;
pub(crate) const TIMESTAMP_END: usize = 40;
/// The offset of `content_size`, eight bytes.
pub const CONTENT_SIZE: usize = 48;
pub(crate) const PACKET_SIZE: usize = 56;
pub(crate) const SEQ_NUM: usize = 64;
pub(crate) const EVENTS_DISCARDED: usize = 72;
pub(crate) const TID: usize = 80;
/// The offset of the checksum, four bytes.
pub const CHECKSUM: usize = 84;
pub(crate) const EVENTS_BEFORE: usize = 88;

/// Identifies a stream among those of all traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamKey {
    /// The trace's uuid.
    pub uuid: [u8; 16],
    /// The channel's stream class id.
    pub class: u32,
    /// The stream's instance number.
    pub instance: u64,
}

/// The header of a packet, without its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketHeader {
    /// [`PACKET_MAGIC`], unless the packet is being written, or damaged.
    pub magic: u32,
    /// The packet's stream.
    pub stream: StreamKey,
    /// The time at which the packet was opened, in nanoseconds of the trace's clock.
    pub begin: u64,
    /// The time of its end.
    pub end: u64,
    /// The size of header and records in bits.
    pub content_bits: u64,
    /// The size of the packet, including padding, in bits.
    pub packet_bits: u64,
    /// The packet's number in its stream. 0 is the empty packet that begins the stream.
    pub sequence: u64,
    /// Number of events that the stream had discarded when the packet was closed.
    pub discarded: u64,
    /// The thread.
    pub tid: u32,
    /// Number of records of the stream before this packet.
    pub events_before: u64,
}

/// Converts a size in bytes to bits.
pub(crate) const fn bits(bytes: usize) -> u64 {
    bytes as u64 * 8
}

impl PacketHeader {
    /// The header of a packet without records, the first of its stream, at `time`.
    pub const fn empty(stream: StreamKey, time: u64) -> Self {
        let size = bits(HEADER_SIZE);
        Self {
            magic: PACKET_MAGIC,
            stream,
            begin: time,
            end: time,
            content_bits: size,
            packet_bits: size,
            sequence: 0,
            discarded: 0,
            tid: 0,
            events_before: 0,
        }
    }

    /// The same header for a packet of `bytes` bytes without padding.
    #[must_use]
    pub const fn with_size(self, bytes: usize) -> Self {
        Self { content_bits: bits(bytes), packet_bits: bits(bytes), ..self }
    }

    /// The size of the packet in bytes.
    pub const fn size(&self) -> u64 {
        self.packet_bits / 8
    }

    /// Reads the header of the packet at the start of `bytes`. Nothing is checked; bytes beyond the end of `bytes` count as zero.
    pub fn parse(bytes: &[u8]) -> Self {
        let (u32, u64) = (|at| u32::from_le_bytes(array(bytes, at)), |at| u64::from_le_bytes(array(bytes, at)));
        Self {
            magic: u32(0),
            stream: StreamKey { uuid: array(bytes, UUID), class: u32(CLASS), instance: u64(INSTANCE) },
            begin: u64(TIMESTAMP_BEGIN),
            end: u64(TIMESTAMP_END),
            content_bits: u64(CONTENT_SIZE),
            packet_bits: u64(PACKET_SIZE),
            sequence: u64(SEQ_NUM),
            discarded: u64(EVENTS_DISCARDED),
            tid: u32(TID),
            events_before: u64(EVENTS_BEFORE),
        }
    }

    /// The bytes of the header, with a checksum of 0, which means none.
    pub fn bytes(&self) -> [u8; HEADER_SIZE] {
        let mut out = [0; HEADER_SIZE];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.magic.to_le_bytes());
        put(UUID, &self.stream.uuid);
        put(CLASS, &self.stream.class.to_le_bytes());
        put(TID, &self.tid.to_le_bytes());
        for (at, number) in [
            (INSTANCE, self.stream.instance),
            (TIMESTAMP_BEGIN, self.begin),
            (TIMESTAMP_END, self.end),
            (CONTENT_SIZE, self.content_bits),
            (PACKET_SIZE, self.packet_bits),
            (SEQ_NUM, self.sequence),
            (EVENTS_DISCARDED, self.discarded),
            (EVENTS_BEFORE, self.events_before),
        ] {
            put(at, &number.to_le_bytes());
        }
        out
    }

    /// Overwrites the header of the packet `bytes`, which has no checksum afterwards.
    pub fn write_to(&self, bytes: &mut [u8]) {
        if let Some(place) = bytes.get_mut(..HEADER_SIZE) {
            place.copy_from_slice(&self.bytes());
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}
