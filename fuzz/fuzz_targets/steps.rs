//! The steps of an input that drives a state machine: each has a byte for the action, a byte with its kind or number, two bytes with the
//! length of the rest, and the rest.

/// The number of the first message of the stream protocol.
pub(crate) const FIRST_MESSAGE: u32 = 0x5450_0000;

/// Takes the next step: its action, its kind, and its bytes. `None` at the end.
pub(crate) fn step<'a>(bytes: &mut &'a [u8]) -> Option<(u8, u8, &'a [u8])> {
    let ([what, kind, low, high], rest) = bytes.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (payload, rest) = rest.split_at(length);
    *bytes = rest;
    Some((*what, *kind, payload))
}
