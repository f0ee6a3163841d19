//! Every message of the tables in `docs/format-stream.md`: checks the bytes, and that decoding an encoded message gives the same message.

use super::*;

fn to_collector<'a>() -> Vec<ToCollector<'a>> {
    vec![
        ToCollector::Hello(Hello {
            version: 1,
            udp: true,
            key: [1; 16],
            trace: [2; 16],
            clock: [3; 16],
            nonce: [4; 32],
            sync_interval: 1000,
            mtu: 1400,
            resend_buffer: 16 << 20,
            host: "vm",
            session: "shop",
            process: "server-42-4711",
        }),
        ToCollector::Auth([9; 32]),
        ToCollector::Announce(Announce {
            request: 7,
            class: 0,
            instance: 3,
            packet_size: 65536,
            names: ["vm", "shop", "server-42-4711", "channel0", "channel0_3"],
        }),
        ToCollector::Metadata(Piece { offset: 10, bytes: b"/* CTF 1.8 */" }),
        ToCollector::Sync(Sync {
            number: 5,
            time: 1 << 40,
            offset: -3,
            bound: NO_BOUND,
            entries: vec![
                SyncEntry { handle: 1, last: NO_SEQ, time: 1 << 39 },
                SyncEntry { handle: 2, last: 6, time: 0 },
            ],
        }),
        ToCollector::Gone(SeqRange { handle: 1, first: 3, last: 9 }),
        ToCollector::ClockProbe(ClockProbe { number: 1, sent: 99 }),
        ToCollector::Close(Close {
            whole: true,
            entries: vec![ClosedStream { handle: 1, last: 8, packets: 7, events_after: 600 }],
        }),
        ToCollector::Account(Piece { offset: 2, bytes: b"{}" }, 4),
        ToCollector::GiveUp,
    ]
}

fn to_sender<'a>() -> Vec<ToSender<'a>> {
    vec![
        ToSender::Challenge([5; 32]),
        ToSender::Welcome(Welcome {
            version: 1,
            resumed: true,
            udp: false,
            session: 12,
            token: [6; 16],
            metadata: 1234,
            tcp_port: 5343,
            udp_port: 0,
            mtu: 65507,
            window: 16 << 20,
            code: [0; 32],
            name: "collector",
        }),
        ToSender::Announced(AnnounceReply { request: 7, handle: 21, next: 4 }),
        ToSender::Ack(Ack { sync: 5, metadata: 1234, entries: vec![AckEntry { handle: 21, next: 5 }] }),
        ToSender::Nack(Nack {
            entries: vec![
                NackEntry { handle: 21, first: 5, last: 6, offset: 0, length: 0 },
                NackEntry { handle: 21, first: 7, last: 7, offset: 1344, length: 2688 },
            ],
        }),
        ToSender::ClockReply(ClockReply { number: 1, sent: 99, received: 1000, replied: 1001 }),
        ToSender::Ready(Ready::Tcp),
        ToSender::Ready(Ready::Udp),
        ToSender::Flow(None),
        ToSender::Flow(Some("the disk is full")),
        ToSender::Closed(vec![StreamTotals { handle: 21, packets: 6, packets_lost: 1, events: 500, events_lost: 100 }]),
        ToSender::Done,
        ToSender::Lost(SeqRange { handle: 21, first: 3, last: 4 }),
        ToSender::NoRoom(7, "the address has its share"),
        ToSender::Error(ErrorCode::Busy, "too many senders"),
        ToSender::Error(ErrorCode::Other(77), ""),
    ]
}

/// The kind and payload of the one frame in `bytes`.
fn unframed(bytes: &[u8]) -> (u32, &[u8]) {
    let header = FrameHeader::decode(bytes).expect("a header").expect("a good one");
    assert_eq!(bytes.len(), FRAME_HEADER + header.size);
    (header.kind, &bytes[FRAME_HEADER..])
}

#[test]
fn every_message_is_decoded_as_it_was_encoded() {
    for message in to_collector() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let (kind, payload) = unframed(&bytes);
        assert_eq!(ToCollector::decode(kind, payload), Ok(message));
    }
    for message in to_sender() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let (kind, payload) = unframed(&bytes);
        assert_eq!(ToSender::decode(kind, payload), Ok(message));
    }
}

#[test]
fn a_message_without_its_last_byte_is_too_short() {
    for message in to_collector() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let (kind, payload) = unframed(&bytes);
        // Pieces extend to the end of the payload, and an empty message has no bytes.
        if let (Some((_, shorter)), false) =
            (payload.split_last(), matches!(message, ToCollector::Metadata(_) | ToCollector::Account(..)))
        {
            assert_eq!(ToCollector::decode(kind, &payload[..shorter.len()]), Err(DecodeError::Short), "{message:?}");
        }
    }
    for message in to_sender() {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let (kind, payload) = unframed(&bytes);
        if !payload.is_empty() {
            assert_eq!(ToSender::decode(kind, &payload[..payload.len() - 1]), Err(DecodeError::Short), "{message:?}");
        }
    }
}

#[test]
fn a_longer_message_is_accepted() {
    let mut bytes = Vec::new();
    ToSender::Ready(Ready::Udp).encode(&mut bytes);
    let longer = [unframed(&bytes).1, b"more"].concat();
    assert_eq!(ToSender::decode(135, &longer), Ok(ToSender::Ready(Ready::Udp)));
}

#[test]
fn the_offsets_are_those_of_the_tables() {
    let mut bytes = Vec::new();
    to_collector()[0].encode(&mut bytes);
    assert_eq!(bytes[8..20], [0, 0, 0, 0, 0, 0, 0, bytes.len() as u8 - 24, 0x54, 0x50, 0, 1]);
    let payload = &bytes[FRAME_HEADER..];
    assert_eq!((&payload[24..40], &payload[56..88]), (&[2; 16][..], &[4; 32][..]));
    assert_eq!(payload[88..96], [0, 0, 3, 232, 0, 0, 5, 120]);
    assert_eq!(payload[104..108], [0, 2, b'v', b'm']);
    bytes.clear();
    to_sender()[1].encode(&mut bytes);
    let payload = &bytes[FRAME_HEADER..];
    assert_eq!((payload[0..8].to_vec(), payload[16..32].to_vec()), (vec![0, 0, 0, 1, 0, 0, 0, 1], vec![6; 16]));
    assert_eq!(payload[40..48], [0x14, 0xdf, 0, 0, 0, 0, 0xff, 0xe3]);
    assert_eq!(payload.len(), 96 + 2 + "collector".len());
}

#[test]
fn what_exceeds_a_limit_is_refused() {
    let mut bytes = Vec::new();
    ToSender::Nack(Nack {
        entries: vec![NackEntry { handle: 1, first: 1, last: 1, offset: 0, length: 0 }; MAX_NACKS + 1],
    })
    .encode(&mut bytes);
    assert_eq!(ToSender::decode(133, unframed(&bytes).1), Err(DecodeError::Long));
    // A number of entries that exceeds the payload.
    assert_eq!(ToSender::decode(133, &[0, 0, 4, 0]), Err(DecodeError::Short));
    let mut header = [0; FRAME_HEADER];
    header[8..20].copy_from_slice(&[0, 0, 0, 0, 0, 0x10, 0, 0x41, 0x54, 0x50, 0, 1]);
    assert_eq!(FrameHeader::decode(&header), Some(Err(DecodeError::Long)));
    header[16..20].copy_from_slice(&[0, 0, 0, 4]);
    assert_eq!(FrameHeader::decode(&header), Some(Err(DecodeError::Kind)));
    assert_eq!(FrameHeader::decode(&header[1..]), None);
    let empty = [0; 28];
    assert_eq!(ToCollector::decode(3, &empty), Err(DecodeError::Text), "an empty name");
    assert_eq!(
        ToCollector::decode(6, &[[0; 16], [1; 16]].concat()[8..]),
        Ok(ToCollector::Gone(SeqRange { handle: 0, first: 0x0101_0101_0101_0101, last: 0x0101_0101_0101_0101 }))
    );
}

#[test]
fn capabilities_are_told_from_stock_flags() {
    let ours = Capabilities::new(true, false);
    assert_eq!(ours.flags(), 0x5450_0100_0000_0002);
    assert_eq!(Capabilities::of(ours.flags()), Some(ours));
    assert_eq!((Capabilities::of(0), Capabilities::of(1), Capabilities::of(0x5450 << 48)), (None, None, None));
}

#[test]
fn a_packet_is_stored_as_it_was() {
    let packet: Vec<u8> = (0..200).collect();
    let route = Route { handle: 21, seq: 5, prev_seq: 3, circuit_id: 0 };
    let wire = [&wire_head(&packet, route).expect("a head")[..], &packet[ROUTE_OFFSET..]].concat();
    assert_eq!(wire.len(), packet.len() + ROUTE_SIZE);
    assert_eq!(wire[ROUTE_OFFSET..ROUTE_OFFSET + 16], [21, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(route_of(&wire), Ok(route));
    assert_eq!(stored_packet(&wire).map(|parts| parts.concat()), Some(packet.clone()));
    assert_eq!((route_of(&wire[..63]), stored_packet(&wire[..63])), (Err(DecodeError::Short), None));
    assert_eq!(wire_head(&packet[..31], route), None);
    for (seq, prev_seq) in [(5, 5), (5, 6), (NO_SEQ, 5)] {
        let wire = wire_head(&packet, Route { seq, prev_seq, ..route }).expect("a head");
        assert_eq!(route_of(&wire), Err(DecodeError::Field));
    }
    let first = wire_head(&packet, Route { seq: 0, prev_seq: NO_SEQ, ..route }).expect("a head");
    assert!(route_of(&first).is_ok());
}

#[test]
fn datagrams_and_records() {
    let header = DatagramHeader {
        probe: false,
        token: [7; 16],
        handle: 21,
        seq: 5,
        offset: 1344,
        total: 2000,
        unit: 1344,
        again: true,
    };
    let datagram = [&header.encode()[..], &[1; 656]].concat();
    assert_eq!(Datagram::decode(&datagram), Ok(Datagram { header, bytes: &[1; 656] }));
    for bit in 0..DatagramHeader::SIZE * 8 {
        let mut bad = datagram.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Datagram::decode(&bad).is_err(), "bit {bit}");
    }
    assert_eq!(Datagram::decode(&datagram[..datagram.len() - 1]), Err(DecodeError::Field));
    for wrong in [
        DatagramHeader { unit: 0, ..header },
        DatagramHeader { offset: 1000, ..header },
        DatagramHeader { total: 1344, ..header },
        DatagramHeader { total: LARGEST_PACKET + 1, ..header },
    ] {
        let datagram = [&wrong.encode()[..], &[1; 656]].concat();
        assert_eq!(Datagram::decode(&datagram), Err(DecodeError::Field), "{wrong:?}");
    }
    let probe = DatagramHeader::probe([7; 16]);
    assert_eq!(Datagram::decode(&probe.encode()).map(|datagram| datagram.header), Ok(probe));

    let attach = Attach { token: [7; 16] };
    assert_eq!(Attach::decode(&attach.encode()), Some(attach));
    assert_eq!(Attach::decode(&[0; 32]), None);
    assert_eq!(RecordHeader::decode(&RecordHeader { size: 2000 }.encode()), Ok(RecordHeader { size: 2000 }));
    assert_eq!(RecordHeader::decode(&RecordHeader { size: 63 }.encode()), Err(DecodeError::Short));
    assert_eq!(RecordHeader::decode(&[255; 8]), Err(DecodeError::Long));
}
