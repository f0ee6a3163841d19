//! The wire form of a packet: the packet of the trace, with routing fields inserted at a fixed offset.
//!
//! | offset | field |
//! |---|---|
//! | 0 | the first 32 bytes of the packet |
//! | 32 | `stream_handle`, `seq`, `prev_seq`, `circuit_id`: u64 each, little-endian |
//! | 64 | the rest of the packet |
//!
//! Neither the sizes nor the checksum of the packet include the inserted fields. A sender therefore copies only the first 32 bytes
//! ([`wire_head`]), and a collector stores two parts of the received bytes ([`stored_packet`]).

use super::DecodeError;

/// Offset of the four routing fields in the wire form of a packet.
pub const ROUTE_OFFSET: usize = 32;
/// Their size in bytes, which is how much longer a packet is in wire form.
pub const ROUTE_SIZE: usize = 32;
/// The size of the part of the wire form that ends with the routing fields.
pub const WIRE_HEAD: usize = ROUTE_OFFSET + ROUTE_SIZE;

/// The routing fields of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The stream, in the numbering of the collector.
    pub handle: u64,
    /// The packet's number in its stream.
    pub seq: u64,
    /// The number of the packet that was sent before it, or [`NO_SEQ`](super::NO_SEQ).
    pub prev_seq: u64,
    /// 0.
    pub circuit_id: u64,
}

/// The first [`WIRE_HEAD`] bytes of `packet` in wire form; the bytes of the packet from [`ROUTE_OFFSET`] on follow. `None` if the packet
/// is too short.
pub fn wire_head(packet: &[u8], route: Route) -> Option<[u8; WIRE_HEAD]> {
    let first: &[u8; ROUTE_OFFSET] = packet.first_chunk()?;
    let mut head = [0; WIRE_HEAD];
    head[..ROUTE_OFFSET].copy_from_slice(first);
    let fields = [route.handle, route.seq, route.prev_seq, route.circuit_id];
    for (place, field) in head[ROUTE_OFFSET..].chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    Some(head)
}

/// The routing fields of a packet in wire form.
///
/// # Errors
///
/// [`DecodeError::Short`] if it is too short for them, [`DecodeError::Field`] if its number is [`NO_SEQ`](super::NO_SEQ) or not above the number
/// of the previous packet.
pub fn route_of(wire: &[u8]) -> Result<Route, DecodeError> {
    let fields = wire.get(ROUTE_OFFSET..WIRE_HEAD).ok_or(DecodeError::Short)?;
    let mut numbers = fields.chunks_exact(8).map(|field| {
        let field: [u8; 8] = field.try_into().unwrap_or_default();
        u64::from_le_bytes(field)
    });
    let mut next = || numbers.next().unwrap_or_default();
    let route = Route { handle: next(), seq: next(), prev_seq: next(), circuit_id: next() };
    let rises = route.prev_seq == super::NO_SEQ || route.prev_seq < route.seq;
    if route.seq == super::NO_SEQ || !rises { Err(DecodeError::Field) } else { Ok(route) }
}

/// The two parts of the wire form that form the stored packet. `None` if it is too short.
pub fn stored_packet(wire: &[u8]) -> Option<[&[u8]; 2]> {
    Some([wire.get(..ROUTE_OFFSET)?, wire.get(WIRE_HEAD..)?])
}
