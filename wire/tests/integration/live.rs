//! The messages of the live viewer protocol, byte by byte as exchanged by LTTng's programs and babeltrace2.

use tracepoint_wire::live::{
    AttachStatus, Connect, Index, IndexStatus, MetadataBytes, MetadataStatus, NEW_STREAM, NewStreamsStatus,
    PacketBytes, PacketStatus, Request, Seek, SessionCreated, SessionDetached, SessionRecord, Sessions, Status,
    StreamRecord, Streams,
};
use tracepoint_wire::{DecodeError, Decoded};

/// Bytes in hexadecimal; spaces and bars are ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// Requests as `babeltrace2` 2.0.4 sent them.
fn requests() -> Vec<(Request, &'static str)> {
    let connect = Connect { viewer_session: u64::MAX, major: 2, minor: 4, kind: 1 };
    vec![
        (Request::Connect(connect), "0000000000000014 00000001 00000000  ffffffffffffffff 00000002 00000004 00000001"),
        (Request::CreateSession, "0000000000000000 00000008 00000000"),
        (Request::ListSessions, "0000000000000000 00000002 00000000"),
        (
            Request::Attach { session: 2, offset: 0, seek: Seek::Last },
            "0000000000000014 00000003 00000000  0000000000000002 0000000000000000 00000002",
        ),
        (Request::NewStreams { session: 2 }, "0000000000000008 00000007 00000000  0000000000000002"),
        (Request::Metadata { stream: 6 }, "0000000000000008 00000006 00000000  0000000000000006"),
        (Request::NextIndex { stream: 5 }, "0000000000000008 00000004 00000000  0000000000000005"),
        (
            Request::Packet { stream: 5, offset: 0, length: 0x1000 },
            "0000000000000014 00000005 00000000  0000000000000005 0000000000000000 00001000",
        ),
        (Request::Detach { session: 2 }, "0000000000000008 00000009 00000000  0000000000000002"),
    ]
}

#[test]
fn requests_are_those_of_stock_viewers() {
    for (request, text) in requests() {
        let bytes = hex(text);
        assert_eq!(encoded(|out| request.encode(out)), bytes, "{request:?}");
        assert_eq!(Request::decode(&bytes), Ok(Decoded::Whole(request, bytes.len())));
        for cut in 0..bytes.len() {
            let needs = if cut < 16 { 16 } else { bytes.len() };
            assert_eq!(Request::decode(&bytes[..cut]), Ok(Decoded::Needs(needs)), "{request:?} cut at {cut}");
        }
        let followed = [bytes.as_slice(), &[9; 20]].concat();
        assert_eq!(Request::decode(&followed), Ok(Decoded::Whole(request, bytes.len())));
    }
}

#[test]
fn a_longer_payload_is_skipped_and_a_bad_one_refused() {
    let mut bytes = hex("000000000000000a 00000007 00000063  0000000000000002 ffff");
    assert_eq!(Request::decode(&bytes), Ok(Decoded::Whole(Request::NewStreams { session: 2 }, 26)));
    bytes[7] = 7;
    assert_eq!(Request::decode(&bytes), Err(DecodeError::Short { kind: 7, size: 7 }));
    bytes[0] = 0x80;
    assert!(matches!(Request::decode(&bytes[..16]), Err(DecodeError::TooMany { .. })), "before the payload arrives");
    assert_eq!(Request::decode(&hex("0000000000000000 0000000a 00000000")), Err(DecodeError::Command(10)));
    let seek = hex("0000000000000014 00000003 00000000  0000000000000002 0000000000000000 00000003");
    assert_eq!(Request::decode(&seek), Err(DecodeError::Number { what: "seek", number: 3 }));
}

#[test]
fn sessions_are_listed() {
    let mut bytes = hex("00000001 | 0000000000000002 0007a120 00000000 00000003");
    bytes.extend_from_slice(b"vm");
    bytes.resize(4 + 84, 0);
    bytes.extend_from_slice(b"liveA");
    bytes.resize(4 + 339, 0);
    let session = SessionRecord {
        id: 2,
        live_timer_us: 500_000,
        clients: 0,
        streams: 3,
        hostname: "vm".to_owned(),
        name: "liveA".to_owned(),
    };
    let sessions = Sessions(vec![session]);
    assert_eq!(encoded(|out| sessions.encode(out)), bytes);
    assert_eq!(Sessions::decode(&bytes), Ok(Decoded::Whole(sessions, 343)));
    assert_eq!(Sessions::decode(&bytes[..342]), Ok(Decoded::Needs(343)));
    assert_eq!(Sessions::decode(&bytes[..3]), Ok(Decoded::Needs(4)));
    assert!(matches!(Sessions::decode(&[0xff; 4]), Err(DecodeError::TooMany { count: 0xffff_ffff, .. })));
}

#[test]
fn streams_are_announced() {
    let mut bytes = hex("00000001 00000002 | 0000000000000006 0000000000000002 00000001");
    bytes.extend_from_slice(b"ust/pid");
    bytes.resize(8 + 4116, 0);
    bytes.extend_from_slice(b"metadata");
    bytes.resize(8 + 4371, 0);
    bytes.extend_from_slice(&hex("0000000000000005 0000000000000002 00000000"));
    bytes.resize(8 + 2 * 4371, 0);
    let stream = |id, is_metadata, path: &str, channel: &str| StreamRecord {
        id,
        trace: 2,
        is_metadata,
        path: path.to_owned(),
        channel: channel.to_owned(),
    };
    let streams = vec![stream(6, true, "ust/pid", "metadata"), stream(5, false, "", "")];
    let reply = Streams { status: NewStreamsStatus::Ok, streams };
    assert_eq!(encoded(|out| reply.encode(out)), bytes);
    assert_eq!(Streams::decode(&bytes), Ok(Decoded::Whole(reply, 8750)));
    assert_eq!(Streams::<NewStreamsStatus>::decode(&bytes[..8]), Ok(Decoded::Needs(8750)));
    let refused = Streams::none(AttachStatus::NotLive);
    assert_eq!(encoded(|out| refused.encode(out)), hex("00000004 00000000"));
    assert_eq!(Streams::decode(&hex("00000004 00000000")), Ok(Decoded::Whole(refused, 8)));
    assert!(matches!(Streams::<AttachStatus>::decode(&hex("00000001 00004001")), Err(DecodeError::TooMany { .. })));
    assert!(matches!(Streams::<AttachStatus>::decode(&hex("00000007 00000000")), Err(DecodeError::Number { .. })));
}

#[test]
fn names_are_cut_to_their_fields() {
    let long = "ä".repeat(200);
    let (hostname, name) = (long.clone(), format!("cut{}here", '\0'));
    let sessions = Sessions(vec![SessionRecord { id: 0, live_timer_us: 0, clients: 0, streams: 0, hostname, name }]);
    let bytes = encoded(|out| sessions.encode(out));
    assert_eq!(bytes.len(), 343);
    let Ok(Decoded::Whole(Sessions(read), 343)) = Sessions::decode(&bytes) else { panic!("it is whole") };
    assert_eq!((read[0].hostname.as_str(), read[0].name.as_str()), (&long[..62], "cut"));
    let full = [bytes[..24].to_vec(), vec![b'x'; 319]].concat();
    let Ok(Decoded::Whole(Sessions(read), 343)) = Sessions::decode(&full) else { panic!("it is whole") };
    assert_eq!((read[0].hostname.len(), read[0].name.len()), (64, 255), "fields without a NUL end");
}

#[test]
fn indexes_say_what_is_known() {
    let packet = "0000000000000000 0000000000008000 00000000000002a0 0000000000000005 0000000000000006 \
                  0000000000000007 0000000000000001 | 00000001 00000002";
    let index = Index {
        offset: 0,
        packet_bits: 0x8000,
        content_bits: 0x2a0,
        begin: 5,
        end: 6,
        discarded: 7,
        stream_class: 1,
        status: IndexStatus::Ok,
        flags: NEW_STREAM,
    };
    let idle = "0 000000000000000 0000000000000000 0000000000000000 0000000000000000 000000d93a88f385 \
                0000000000000000 0000000000000003 | 00000005 00000000";
    for (text, expected) in [(packet, index), (idle, Index::inactive(0xd9_3a88_f385, 3))] {
        assert_eq!(Index::decode(&hex(text)), Ok(Decoded::Whole(expected, 64)));
        assert_eq!(encoded(|out| expected.encode(out)), hex(text));
    }
    assert_eq!(Index::decode(&[0; 63]), Ok(Decoded::Needs(64)));
    assert_eq!(Index::decode(&[0; 64]), Err(DecodeError::Number { what: "status of GET_NEXT_INDEX", number: 0 }));
    let hup = encoded(|out| Index::only(IndexStatus::Hup).encode(out));
    assert_eq!(hup[..56], [0; 56]);
    assert_eq!(hup[56..], hex("00000003 00000000"));
}

#[test]
fn contents_are_bounded() {
    let bytes = hex("00000001 00000003 00000001 | c11ffc");
    let packet = PacketBytes { status: PacketStatus::Ok, flags: 1, bytes: &[0xc1, 0x1f, 0xfc] };
    assert_eq!(PacketBytes::decode(&bytes, 3), Ok(Decoded::Whole(packet, 15)));
    assert_eq!(encoded(|out| packet.encode(out)), bytes);
    assert_eq!(PacketBytes::decode(&bytes[..13], 3), Ok(Decoded::Needs(15)));
    assert!(matches!(PacketBytes::decode(&bytes, 2), Err(DecodeError::TooMany { count: 3, most: 2, .. })));
    let refused = hex("00000003 ffffffff 00000002");
    let error = PacketBytes::only(PacketStatus::Error, NEW_STREAM);
    assert_eq!(PacketBytes::decode(&refused, 3), Ok(Decoded::Whole(error, 12)), "nothing follows an error");

    let bytes = hex("0000000000000002 00000001 | 2f2a");
    let metadata = MetadataBytes { status: MetadataStatus::Ok, bytes: b"/*" };
    assert_eq!(MetadataBytes::decode(&bytes, 2), Ok(Decoded::Whole(metadata, 14)));
    assert_eq!(encoded(|out| metadata.encode(out)), bytes);
    let nothing = MetadataBytes::only(MetadataStatus::Nothing);
    assert_eq!(encoded(|out| nothing.encode(out)), hex("0000000000000000 00000002"));
    assert!(matches!(MetadataBytes::decode(&bytes, 1), Err(DecodeError::TooMany { count: 2, most: 1, .. })));
    let endless = hex("8000000000000000 00000001");
    assert!(matches!(MetadataBytes::decode(&endless, 64 << 20), Err(DecodeError::TooMany { .. })));
}

#[test]
fn the_other_replies_are_words() {
    let connected = hex("0000000000000001 00000002 0000000d 00000000");
    let connect = Connect::relay(1);
    assert_eq!(encoded(|out| connect.encode(out)), connected);
    assert_eq!(Connect::decode(&connected), Decoded::Whole(connect, 20));
    assert_eq!(Connect::decode(&connected[..19]), Decoded::Needs(20));
    for (word, success) in [("00000001", true), ("00000002", false)] {
        assert_eq!(encoded(|out| SessionCreated(success).encode(out)), hex(word));
        assert_eq!(encoded(|out| SessionDetached(success).encode(out)), hex(word));
        assert_eq!(SessionCreated::decode(&hex(word)), Decoded::Whole(SessionCreated(success), 4));
        assert_eq!(SessionDetached::decode(&hex(word)), Decoded::Whole(SessionDetached(success), 4));
    }
    assert_eq!(SessionDetached::decode(&hex("00000003")), Decoded::Whole(SessionDetached(false), 4));
    assert_eq!(NewStreamsStatus::Hup.number(), 4);
}
