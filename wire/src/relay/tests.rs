//! The bytes of the messages, checked against the tables of the protocol and captures of LTTng's programs.

use super::*;
use crate::{DecodeError, Decoded};
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).expect("hexadecimal digits")).collect()
}

fn command(bytes: &[u8], minor: u32) -> Command<'_> {
    match Command::decode(bytes, minor, LONGEST_PAYLOAD) {
        Ok(Decoded::Whole(command, size)) => {
            assert_eq!(size, bytes.len());
            command
        }
        other => panic!("{other:?}"),
    }
}

/// Checks a command against its layout in hexadecimal digits, without the header.
fn check(payload: &str, minor: u32, expected: &Command<'_>) {
    let payload = hex(payload);
    let header = ControlHeader { size: payload.len() as u64, command: expected.number(), ..ControlHeader::default() };
    let bytes = [&header.encode()[..], &payload].concat();
    assert_eq!(&command(&bytes, minor), expected);
    let mut out = Vec::new();
    expected.encode(minor, &mut out);
    assert_eq!(out, bytes, "{expected:?}");
}

#[test]
fn the_header_is_that_of_the_capture() {
    let bytes = hex("0000000000000000 0000000000000008 00000005 00000000 00000002 0000000d");
    assert_eq!(command(&bytes, 13), Command::Version(Version { major: 2, minor: 13 }));
}

#[test]
fn commands_have_the_bytes_of_the_tables() {
    let session = CreateSession {
        name: "netA".into(),
        host: "vm".into(),
        live_timer: 500_000,
        sender: [0xab; 16],
        id: 1,
        creation_time: 0x6560_0000,
        current_chunk: Some(3),
        ..CreateSession::default()
    };
    let uuid = "ab".repeat(16);
    let payload = format!(
        "00000005 00000003 00000001 0007a120 00 00 {uuid} 0000000000000001 0000000065600000 01 0000000000000003 6e65744100 766d00 00"
    );
    check(&payload, 13, &Command::CreateSession(session.clone()));
    let old = CreateSession { sender: [0; 16], id: 0, creation_time: 0, current_chunk: None, ..session };
    let payload = format!("6e657441{} 766d{} 0007a120 00000000", "00".repeat(251), "00".repeat(62));
    check(&payload, 10, &Command::CreateSession(old));

    let stream = AddStream { channel: "c_0".into(), path: "ust".into(), file_size: 4096, file_count: 2, chunk: 1 };
    let payload = "00000004 00000004 0000000000001000 0000000000000002 0000000000000001 635f3000 75737400";
    check(payload, 11, &Command::AddStream(stream.clone()));
    let payload = format!("635f30{} 757374{} 0000000000001000 0000000000000002", "00".repeat(261), "00".repeat(4093));
    check(&payload, 4, &Command::AddStream(AddStream { chunk: 0, ..stream }));

    let index = Index {
        handle: 1,
        sequence: 2,
        packet_size: 32768,
        content_size: 672,
        begin: 5,
        end: 6,
        discarded: 7,
        stream_class: 8,
        stream_instance: 9,
        packet_number: 10,
    };
    let short = "0000000000000001 0000000000000002 0000000000008000 00000000000002a0 0000000000000005 0000000000000006
                 0000000000000007 0000000000000008";
    check(&format!("{short} 0000000000000009 000000000000000a"), 8, &Command::SendIndex(index));
    let unknown = Index { stream_instance: u64::MAX, packet_number: u64::MAX, ..index };
    check(short, 7, &Command::SendIndex(unknown));

    let metadata = Command::SendMetadata { handle: 3, padding: 922, bytes: b"abc" };
    check("0000000000000003 0000039a 616263", 13, &metadata);
    check(
        "0000000000000000 0000000000000007 00000000",
        13,
        &Command::CreateChunk(CreateChunk { creation_time: 7, ..CreateChunk::default() }),
    );
    check(
        "0000000000000001 0000000000000007 00000002 6100",
        13,
        &Command::CreateChunk(CreateChunk { id: 1, creation_time: 7, name: Some("a".into()) }),
    );
    for (end, bytes) in
        [(None, "00 00000000"), (Some(ChunkEnd::Archive), "01 00000000"), (Some(ChunkEnd::Delete), "01 00000002")]
    {
        let close = CloseChunk { id: 1, close_time: 2, end };
        check(&format!("0000000000000001 0000000000000002 {bytes}"), 13, &Command::CloseChunk(close));
    }
    let two = "0000000000000007 ffffffffffffffff";
    check(two, 13, &Command::CloseStream { handle: 7, last: u64::MAX });
    check(two, 13, &Command::DataPending { handle: 7, last: u64::MAX });
    check(two, 13, &Command::ResetMetadata { handle: 7, version: u64::MAX });
    check("0000000000000007", 13, &Command::QuiescentControl { handle: 7 });
    check("0000000000000007", 13, &Command::BeginDataPending { session: 7 });
    check("0000000000000007", 13, &Command::EndDataPending { session: 7 });
    check("0000000000000007", 13, &Command::ChunkExists { chunk: 7 });
    check("0000000000000000", 13, &Command::GetConfiguration { flags: 0 });
    check("", 13, &Command::StreamsSent);
    check("", 13, &Command::StartData);
}

#[test]
fn a_rotation_may_have_uninitialised_padding() {
    let rotation = RotateStreams { chunk: Some(1), streams: vec![(2, 3), (4, 5)] };
    let streams = "0000000000000002 0000000000000003 0000000000000004 0000000000000005";
    let expected = Command::RotateStreams(rotation);
    check(&format!("00000002 01 0000000000000001 {streams}"), 13, &expected);
    for padding in ["", "aabbcc", "aabbccddeeff11"] {
        let payload = hex(&format!("00000002 01 {padding} 0000000000000001 {streams}"));
        assert_eq!(Command::from_payload(18, &payload, 13).as_ref(), Ok(&expected), "{padding}");
    }
    let absurd = hex("ffffffff 01 0000000000000001");
    assert_eq!(Command::from_payload(18, &absurd, 13), Err(DecodeError::Short { kind: 18, size: 13 }));
}

#[test]
fn a_longer_payload_is_accepted_and_a_shorter_one_is_not() {
    for (number, size) in [(1, 32), (2, 59), (5, 8), (6, 12), (7, 16), (13, 80), (19, 20), (20, 21), (22, 8)] {
        let long = vec![0; size + 5];
        assert!(Command::from_payload(number, &long, 13).is_ok(), "{number}");
        let short = DecodeError::Short { kind: number, size: size as u64 - 1 };
        assert_eq!(Command::from_payload(number, &long[..size - 1], 13), Err(short));
    }
    for unknown in [0, 4, 12, 14, 15, 23, u32::MAX] {
        assert_eq!(Command::from_payload(unknown, &[0; 128], 13), Err(DecodeError::Command(unknown)));
    }
}

#[test]
fn sizes_are_limited_before_anything_is_kept() {
    let header = ControlHeader { size: u64::MAX, command: 6, ..ControlHeader::default() }.encode();
    let most = DecodeError::TooMany { what: "bytes of a command", count: u64::MAX, most: 100 };
    assert_eq!(Command::decode(&header, 13, 100), Err(most));
    assert_eq!(Command::decode(&header[..23], 13, 100), Ok(Decoded::Needs(24)));
    let header = ControlHeader { size: 8, command: 5, ..ControlHeader::default() }.encode();
    assert_eq!(Command::decode(&header, 13, 8), Ok(Decoded::Needs(32)));
}

#[test]
fn packets_have_the_header_of_the_capture() {
    let header = DataHeader { circuit_id: 0, handle: 1, sequence: 2, size: 84, padding: 4012 };
    let bytes = hex("0000000000000000 0000000000000001 0000000000000002 00000054 00000fac");
    assert_eq!(header.encode().as_slice(), bytes);
    assert_eq!(DataHeader::decode(&header.encode()), header);
}

#[test]
fn answers_have_the_bytes_of_the_tables() {
    let session = Command::CreateSession(CreateSession::default());
    let stream = Command::AddStream(AddStream::default());
    let close = Command::CloseChunk(CloseChunk { id: 0, close_time: 0, end: None });
    let (ok, fatal) = (ReturnCode::Ok, ReturnCode::Fatal);
    let pending = Command::DataPending { handle: 0, last: 0 };
    for (command, minor, reply, bytes) in [
        (
            &Command::Version(Version { major: 2, minor: 4 }),
            13,
            Reply::Version(Version { major: 2, minor: 13 }),
            "00000002 0000000d",
        ),
        (
            &session,
            13,
            Reply::Session { id: 1, code: ok, path: "a/b".into() },
            "0000000000000001 0000000a 00000004 612f6200",
        ),
        (
            &session,
            13,
            Reply::Session { id: 0, code: fatal, path: String::new() },
            "0000000000000000 00000019 00000000",
        ),
        (&session, 10, Reply::Session { id: 1, code: ok, path: String::new() }, "0000000000000001 0000000a"),
        (&stream, 13, Reply::Stream { handle: u64::MAX, code: ReturnCode::Unknown }, "ffffffffffffffff 0000000b"),
        (&close, 13, Reply::ChunkClosed { code: ok, path: "x".into() }, "0000000a 00000002 7800"),
        (&Command::ChunkExists { chunk: 0 }, 13, Reply::ChunkExists { code: ok, exists: true }, "0000000a 01"),
        (
            &Command::GetConfiguration { flags: 0 },
            13,
            Reply::Configuration { code: ok, flags: 1 },
            "0000000a 0000000000000001",
        ),
        (&pending, 13, Reply::Pending(DataPending::Yes), "00000001"),
        (&pending, 13, Reply::Pending(DataPending::Error), "ffffffff"),
        (&Command::StreamsSent, 13, Reply::Code(ReturnCode::Protocol), "00000098"),
        (&Command::StreamsSent, 13, Reply::Code(ReturnCode::Other(7)), "00000007"),
    ] {
        let bytes = hex(bytes);
        assert_eq!(Reply::decode(command, &bytes, minor), Ok(Decoded::Whole(reply.clone(), bytes.len())));
        for end in 0..bytes.len() {
            assert!(matches!(Reply::decode(command, &bytes[..end], minor), Ok(Decoded::Needs(more)) if more > end));
        }
        let mut out = Vec::new();
        reply.encode(minor, &mut out);
        assert_eq!(out, bytes, "{reply:?}");
    }
    let long = hex("0000000000000001 0000000a 00001001");
    assert!(matches!(Reply::decode(&session, &long, 13), Err(DecodeError::TooMany { .. })));
}

#[test]
fn index_files_have_the_layout_that_viewers_accept() {
    let index = Index { packet_size: 32768, content_size: 672, begin: 1, end: 2, packet_number: 4, ..Index::default() };
    for (minor, header, size) in
        [(13, "c1f1dcc1 00000001 00000001 00000048", 72), (7, "c1f1dcc1 00000001 00000000 00000038", 56)]
    {
        let format = IndexFile::of_minor(minor);
        assert_eq!(format.header().as_slice(), hex(header));
        assert_eq!(IndexFile::of_header(&format.header()), Some(format));
        let mut out = Vec::new();
        format.put_entry(4096, &index, &mut out);
        assert_eq!(out.len(), size);
        let (offset, read) = format.entry(&out).expect("an entry");
        assert_eq!((offset, read.packet_size, read.end), (4096, 32768, 2));
        assert_eq!(format.entry(&out[1..]), None);
    }
    assert_eq!(IndexFile::of_header(&[0; 16]), None);
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(number in 0_u32..24, minor in 4_u32..14, bytes: Vec<u8>) {
        if let Ok(command) = Command::from_payload(number, &bytes, minor) {
            // A payload with a tail or padding is encoded without them, and then decodes to the same command.
            let mut out = Vec::new();
            command.encode(minor, &mut out);
            let again = Command::decode(&out, minor, LONGEST_PAYLOAD);
            // Names that were not UTF-8 may now be too long for fixed fields, and are cut.
            let is_same = minor < MINOR_WITH_CHUNKS || again == Ok(Decoded::Whole(command, out.len()));
            prop_assert!(again.is_ok() && is_same);
        }
    }
}
