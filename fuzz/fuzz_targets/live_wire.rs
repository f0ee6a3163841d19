//! Any bytes as a message of the live viewer protocol, in both directions: the decoded data lies within the bytes, and is encoded to an equivalent
//! message; an incomplete message needs more bytes than there are, within its bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_wire::live::{
    AttachStatus, Connect, Index, MetadataBytes, NewStreamsStatus, PacketBytes, Request, SessionCreated,
    SessionDetached, Sessions, Streams,
};
use tracepoint_wire::{DecodeError, Decoded};

/// The longest message that any of these bounds admits.
const LONGEST: usize = 128 << 20;

fn check<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<Decoded<T>, DecodeError>,
    encode: impl Fn(&T, &mut Vec<u8>),
    same: impl Fn(&T, &[u8]),
) {
    match decode(bytes) {
        Ok(Decoded::Needs(size)) => assert!(size > bytes.len() && size <= LONGEST),
        Ok(Decoded::Whole(message, size)) => {
            assert!(size <= bytes.len());
            let mut out = Vec::new();
            encode(&message, &mut out);
            same(&message, &out);
        }
        Err(_) => {}
    }
}

macro_rules! check {
    ($bytes:expr, $decode:expr) => {
        check(
            $bytes,
            $decode,
            |message, out| message.encode(out),
            |message, out| {
                assert_eq!($decode(out), Ok(Decoded::Whole(*message, out.len())));
            },
        )
    };
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 10 {
        0 => check!(bytes, Request::decode),
        1 => check!(bytes, |bytes: &[u8]| Ok::<_, DecodeError>(Connect::decode(bytes))),
        2 => check!(bytes, |bytes: &[u8]| Ok::<_, DecodeError>(SessionCreated::decode(bytes))),
        3 => check!(bytes, |bytes: &[u8]| Ok::<_, DecodeError>(SessionDetached::decode(bytes))),
        4 => check!(bytes, Index::decode),
        5 => {
            if let Ok(Decoded::Whole(packet, size)) = PacketBytes::decode(bytes, 4096) {
                let mut out = Vec::new();
                packet.encode(&mut out);
                assert!(size <= bytes.len() && packet.bytes.len() <= 4096);
                assert_eq!(PacketBytes::decode(&out, 4096), Ok(Decoded::Whole(packet, out.len())));
            }
        }
        6 => {
            if let Ok(Decoded::Whole(metadata, size)) = MetadataBytes::decode(bytes, 4096) {
                let mut out = Vec::new();
                metadata.encode(&mut out);
                assert!(size <= bytes.len() && metadata.bytes.len() <= 4096);
                assert_eq!(MetadataBytes::decode(&out, 4096), Ok(Decoded::Whole(metadata, out.len())));
            }
        }
        // Names that are not UTF-8, or fill their fields, change when they are encoded.
        7 => check(bytes, Sessions::decode, Sessions::encode, |sessions, out| {
            assert_eq!(out.len(), 4 + sessions.0.len() * 339);
        }),
        8 => check(bytes, Streams::<AttachStatus>::decode, Streams::encode, |reply, out| {
            assert_eq!(out.len(), 8 + reply.streams.len() * 4371);
        }),
        _ => check(bytes, Streams::<NewStreamsStatus>::decode, Streams::encode, |reply, out| {
            assert_eq!(out.len(), 8 + reply.streams.len() * 4371);
        }),
    }
});
