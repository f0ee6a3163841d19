//! The contents of a message: frames, or a packet.

use super::Token;
use crate::stream::{DecodeError, FRAME_HEADER, FrameHeader, ROUTE_OFFSET, Route, ToCollector, route_of};

/// A message of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Frames.
    Frames(Vec<ToCollector<'a>>),
    /// A packet in wire form, whose handle is the number of the stream.
    Packet(Route, &'a [u8]),
}

impl<'a> Message<'a> {
    /// Decodes the payload of a message with this token.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it is not such a message.
    pub fn decode(token: &Token, payload: &'a [u8]) -> Result<Self, DecodeError> {
        match token {
            Token::Stream(_) => Ok(Self::Packet(route_of(payload)?, payload)),
            Token::Hello | Token::Control | Token::Sync => control_frames(payload).map(Self::Frames),
        }
    }
}

/// The frames of a message, which must be complete.
///
/// # Errors
///
/// [`DecodeError`] if one is incomplete, or is not a frame of a sender.
pub fn control_frames(mut payload: &[u8]) -> Result<Vec<ToCollector<'_>>, DecodeError> {
    let mut frames = Vec::new();
    while !payload.is_empty() {
        let header = FrameHeader::decode(payload).ok_or(DecodeError::Short)??;
        let end = FRAME_HEADER + header.size;
        let body = payload.get(FRAME_HEADER..end).ok_or(DecodeError::Short)?;
        frames.push(ToCollector::decode(header.kind, body)?);
        payload = &payload[end..];
    }
    Ok(frames)
}

/// The packet with another handle, which identifies the stream in a collector.
pub fn with_handle(packet: &[u8], handle: u64) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if let Some(place) = packet.get_mut(ROUTE_OFFSET..ROUTE_OFFSET + 8) {
        place.copy_from_slice(&handle.to_le_bytes());
    }
    packet
}
