//! Datagrams of the UDP trace server byte for byte, written from the tables of `docs/format-udp.md` alone.

use tracepoint_ring::channel::StreamKey;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::udp::{
    Accept, Ack, Batch, Challenge, DecodeError, End, FromServer, LegacyPacket, Losses, Mark, MarkKind, Ping, Text,
    TextKind, ToClient, ToServer, Welcome, packet_header,
};

/// Bytes from hexadecimal digits; blanks do not count, and `n*xx` is `n` times the byte `xx`.
fn hex(text: &str) -> Vec<u8> {
    let byte = |digits: &str| u8::from_str_radix(digits, 16).expect("two digits");
    text.split_whitespace()
        .flat_map(|word| match word.split_once('*') {
            Some((n, digits)) => vec![byte(digits); n.parse().expect("a number")],
            None => (0..word.len()).step_by(2).map(|at| byte(&word[at..at + 2])).collect(),
        })
        .collect()
}

/// CRC-32C bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82F6_3B78 & (sum & 1).wrapping_neg()))
    })
}

/// The datagram in `text`, with its checksum put into bytes 8 to 12.
fn sealed(text: &str) -> Vec<u8> {
    let mut bytes = hex(text);
    assert_eq!(bytes[8..12], [0; 4], "the place of the checksum");
    let sum = crc32c(&bytes);
    bytes[8..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn the_test_has_the_right_checksum() {
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
}

fn assert_server(bytes: &[u8], seq: u32, session: Option<u32>, message: ToClient<'_>) {
    assert_eq!(FromServer::decode(bytes), Ok(FromServer { seq, session, message }));
    // Truncated and extended messages are refused, except those that end with the datagram and have no checksum.
    for length in 0..bytes.len() {
        assert!(FromServer::decode(&bytes[..length]).is_err(), "{length} bytes of it");
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert!(FromServer::decode(&longer).is_err());
    if session.is_some() {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(FromServer::decode(&flipped).is_err(), "bit {bit} is wrong");
        }
    }
}

#[test]
fn marks() {
    let marks = [
        ("00010203 02 000000 01", MarkKind::TraceBegin, None),
        ("00010203 02 000000 02", MarkKind::TraceEnd, None),
        ("00010203 02 000000 03", MarkKind::SessionBegin, None),
        ("00010203 02 b1fedc 03", MarkKind::SessionBegin, Some(0xfedc)),
        ("00010203 02 000000 04", MarkKind::SessionEnd, None),
    ];
    for (bytes, kind, offer) in marks {
        let mark = Mark { kind, offer };
        assert_eq!(mark.encode(0x0001_0203)[..], hex(bytes));
        assert_server(&hex(bytes), 0x0001_0203, None, ToClient::Mark(mark));
    }
    // Padding is no offer where it is not marked as one, nor in another mark.
    let mark = |text: &str| match FromServer::decode(&hex(text))?.message {
        ToClient::Mark(mark) => Ok(mark),
        _ => Err(DecodeError::Kind),
    };
    assert_eq!(mark("00000000 02 b2fedc 03"), Ok(Mark::new(MarkKind::SessionBegin)));
    assert_eq!(mark("00000000 02 b1fedc 04"), Ok(Mark::new(MarkKind::SessionEnd)));
    assert_eq!(mark("00000000 02 000000 00"), Err(DecodeError::Kind));
    assert_eq!(mark("00000000 02 000000 05"), Err(DecodeError::Kind));
    let never = Mark { kind: MarkKind::TraceEnd, offer: Some(7) };
    assert_eq!(never.encode(0)[..], hex("00000000 02 000000 02"), "an offer in SESSION_BEGIN alone");
}

#[test]
fn legacy_packets() {
    let bytes = hex("ffffffff 01 27*00 01234567 89abcdef 24*00 0005 68656c6c6f");
    let packet = LegacyPacket { time_ns: 0x0123_4567_89ab_cdef, content: b"hello" };
    let mut out = Vec::new();
    packet.encode(u32::MAX, &mut out).expect("fits");
    assert_eq!(out, bytes);
    assert_server(&bytes, u32::MAX, None, ToClient::Packet(packet));

    // Unused bytes are ignored.
    let dirty = hex("ffffffff 01 27*aa 01234567 89abcdef 24*55 0005 68656c6c6f");
    assert_server(&dirty, u32::MAX, None, ToClient::Packet(packet));
    assert_server(&hex("00000000 01 61*00"), 0, None, ToClient::Packet(LegacyPacket { time_ns: 0, content: b"" }));
}

#[test]
fn a_legacy_message_has_at_most_1500_bytes() {
    let content = [7; 1435];
    let mut out = vec![1, 2];
    let packet = |content| LegacyPacket { time_ns: 1, content };
    assert_eq!(packet(&content).encode(0, &mut out), Err(DecodeError::Long));
    assert_eq!(out, [1, 2], "left as it was");
    out.clear();
    packet(&content[1..]).encode(0, &mut out).expect("fits");
    assert_eq!(out.len(), 1500);
    assert!(FromServer::decode(&out).is_ok());
    out[65] += 1;
    out.push(7);
    assert_eq!(FromServer::decode(&out), Err(DecodeError::Long));
}

const HEAD: &str = "00000102 KK 000000 00000000 deadbeef ";

fn server(kind: &str, body: &str) -> Vec<u8> {
    sealed(&(HEAD.replace("KK", kind) + body))
}

const SEQ: u32 = 0x0102;
const SESSION: u32 = 0xdead_beef;

#[test]
fn challenge_and_welcome() {
    let challenge = Challenge { token: *b"0123456789abcdef" };
    let bytes = sealed("00000102 10 000000 00000000 00000000 30313233 34353637 38396162 63646566");
    assert_eq!(challenge.encode(SEQ)[..], bytes);
    assert_server(&bytes, SEQ, Some(0), ToClient::Challenge(challenge));

    let welcome =
        Welcome { first: true, mtu: 1400, timeout_ms: 5000, uuid: [0x77; 16], earlier: 0x0102_0304_0506_0708 };
    let bytes = server("11", "01 01 0578 00001388 16*77 0102030405060708");
    assert_eq!(welcome.encode(SEQ, SESSION)[..], bytes);
    assert_server(&bytes, SEQ, Some(SESSION), ToClient::Welcome(welcome));
    let newer = server("11", "01 02 0578 00001388 16*77 0102030405060708");
    assert_eq!(FromServer::decode(&newer), Err(DecodeError::Field));
}

#[test]
fn text() {
    let text = Text { kind: TextKind::Metadata, offset: 0x0100, total: 0x0107, bytes: b"/* CTF " };
    let bytes = server("12", "01 000000 00000100 00000107 2f2a2043544620");
    let mut out = Vec::new();
    text.encode(SEQ, SESSION, &mut out);
    assert_eq!(out, bytes);
    assert_server(&bytes, SEQ, Some(SESSION), ToClient::Text(text));
    for wrong in ["01 000000 00000101 00000107 2f2a2043544620", "02 000000 00000000 04000001 2f"] {
        assert_eq!(FromServer::decode(&server("12", wrong)), Err(DecodeError::Field));
    }
    assert_eq!(FromServer::decode(&server("12", "03 000000 00000000 00000001 2f")), Err(DecodeError::Kind));
}

#[test]
fn ping_and_end() {
    let ping = Ping { events: 0x0a0b, batches: 0x0c0d };
    let bytes = server("14", "0000000000000a0b 00000c0d 00000000");
    assert_eq!(ping.encode(SEQ, SESSION)[..], bytes);
    assert_server(&bytes, SEQ, Some(SESSION), ToClient::Ping(ping));

    let lost = Losses { limit: 5, rate: 6, too_large: 7, failed: 8 };
    let end = End { trace: true, batches: 1, events: 2, legacy: 3, metadata: 4, account: 9, lost };
    let bytes = server(
        "15",
        "01 000000 00000001 0000000000000002 0000000000000003 00000004 00000009
         0000000000000005 0000000000000006 0000000000000007 0000000000000008 0000000000000000",
    );
    assert_eq!(end.encode(SEQ, SESSION)[..], bytes);
    assert_server(&bytes, SEQ, Some(SESSION), ToClient::End(end));
    assert_eq!(lost.total(), 26);
}

/// A CTF packet as `docs/format-ring.md` lays it out.
const PACKET: &str = "c11ffcc1 16*55 03000000 0400000000000000
    0500000000000000 0600000000000000 2003000000000000 2003000000000000 0700000000000000 0800000000000000
    09000000 00000000 0a00000000000000 deadbeef";

#[test]
fn batches_hold_ctf_packets() {
    let packet = hex(PACKET);
    let stream = StreamKey { uuid: [0x55; 16], class: 3, instance: 4 };
    let header = PacketHeader {
        end: 6,
        sequence: 7,
        discarded: 8,
        tid: 9,
        events_before: 10,
        ..PacketHeader::empty(stream, 5).with_size(100)
    };
    assert_eq!(header.bytes()[..], packet[..96]);
    assert_eq!(packet_header(&packet), Ok(header));

    let bytes = server("13", &format!("0000000000000a0b 0000000c 0000000d {PACKET} {PACKET}"));
    let two = [&packet[..], &packet].concat();
    let batch = Batch { events_before: 0x0a0b, events: 12, number: 13, packets: &two };
    let mut out = Vec::new();
    batch.encode(SEQ, SESSION, &mut out);
    assert_eq!(out, bytes);
    assert_server(&bytes, SEQ, Some(SESSION), ToClient::Batch(batch));
    assert_eq!(batch.packets().collect::<Result<Vec<_>, _>>(), Ok(vec![(header, &packet[..]); 2]));
}

#[test]
fn a_malformed_packet_ends_a_batch() {
    let packet = hex(PACKET);
    let after_a_whole_one = |rest: &[u8]| -> Vec<_> {
        let packets = [&packet[..], rest].concat();
        let batch = Batch { events_before: 0, events: 0, number: 0, packets: &packets };
        batch.packets().map(|packet| packet.map(|(header, bytes)| (header.size() as usize, bytes.len()))).collect()
    };
    let changed = |at: usize, byte: u8| {
        let mut packet = packet.clone();
        packet[at] = byte;
        packet
    };
    let cases = [
        (packet[..99].to_vec(), DecodeError::Short),
        (packet[..95].to_vec(), DecodeError::Short),
        (changed(0, 0), DecodeError::Kind),
        (changed(48, 0x18), DecodeError::Field),
        (changed(63, 0xff), DecodeError::Field),
    ];
    for (bytes, reason) in cases {
        assert_eq!(after_a_whole_one(&bytes), [Ok((100, 100)), Err(reason)]);
    }
    let mut small = packet.clone();
    small[48..50].copy_from_slice(&[0xf8, 0x02]);
    small[56..58].copy_from_slice(&[0xf8, 0x02]);
    assert_eq!(after_a_whole_one(&small), [Ok((100, 100)), Err(DecodeError::Field)]);
}

fn assert_client(bytes: &[u8], message: ToServer) {
    let mut out = Vec::new();
    message.encode(&mut out);
    assert_eq!(out, bytes);
    assert_eq!(ToServer::decode(bytes), Ok(message));
    for length in 0..bytes.len() {
        assert!(ToServer::decode(&bytes[..length]).is_err(), "{length} bytes of it");
    }
    if bytes.len() > 1 {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ToServer::decode(&flipped).is_err(), "bit {bit} is wrong");
        }
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert!(ToServer::decode(&longer).is_err());
}

#[test]
fn client_messages() {
    assert_client(&[1], ToServer::Start);
    assert_client(&[2], ToServer::Stop);
    assert_client(&sealed("74707531 03 000000 00000000 deadbeef"), ToServer::Leave(SESSION));
    let ack = Ack { session: SESSION, metadata: 1, account: 2, events: 3, seq: 4, ended: true };
    assert_client(
        &sealed("74707531 02 000000 00000000 deadbeef 00000001 00000002 0000000000000003 00000004 01 000000"),
        ToServer::Ack(ack),
    );
    let accept = Accept { window: 0x0102, token: *b"0123456789abcdef", ..Accept::new(0xfedc) };
    assert_client(
        &sealed(
            "74707531 01 000000 00000000 00000000 01 00 fedc 0578 ffe3 0102 6*00
             30313233 34353637 38396162 63646566 16*00",
        ),
        ToServer::Accept(accept),
    );
}

#[test]
fn malformed_commands() {
    for junk in [&[][..], &[0], &[3], &[1, 1], &[0; 16], b"tpu1", &[0xff; 2000]] {
        assert!(ToServer::decode(junk).is_err(), "{junk:?}");
    }
    // A version to come, and limits that are none: smaller than the least, the single event's smaller than the others', too large.
    for body in ["02 00 0000 0578 ffe3", "01 00 0000 01ff ffe3", "01 00 0000 0578 0577", "01 00 0000 0578 ffe4"] {
        let accept = sealed(&format!("74707531 01 000000 00000000 00000000 {body} 40*00"));
        assert_eq!(ToServer::decode(&accept), Err(DecodeError::Field));
    }
}
