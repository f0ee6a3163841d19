use super::*;
use crate::stream::{Announce, Close, Hello, Piece, Route, SyncEntry, ToCollector, stored_packet, wire_head};

/// As `controller/tests/integration/errors.rs` requires of all error types.
#[cfg(feature = "nats")]
#[test]
fn errors_cross_threads() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>() {}
    is_error::<JetStreamError>();
}

#[test]
fn names_are_escaped_and_come_back() {
    for (name, token) in [
        ("", "="),
        ("web-1_a", "web-1_a"),
        ("web.1", "web=2E1"),
        ("a*b>c d", "a=2Ab=3Ec=20d"),
        ("=", "=3D"),
        ("\u{e9}\n", "=C3=A9=0A"),
    ] {
        assert_eq!(escaped(name), token);
        assert_eq!(unescaped(token).as_deref(), Some(name));
    }
    for wrong in ["", "=2e", "=4", "=41", "a.b", "a b", "=FF", "=hello", "\u{e9}", "a="] {
        assert_eq!(unescaped(wrong), None, "{wrong}");
    }
}

#[test]
fn subjects_are_taken_apart() {
    let uuid = [0xAB; 16];
    let trace = TraceSubject::new("web.1", "my session", "till-7-99", uuid);
    assert_eq!(trace.all(), "tracepoint.web=2E1.my=20session-till-7-99-abababab.>");
    assert_eq!(trace.key(), "web=2E1.my=20session-till-7-99-abababab");
    for token in [Token::Hello, Token::Control, Token::Sync, Token::Stream("default_3".to_owned())] {
        let subject = trace.subject(&token);
        assert_eq!(TraceSubject::parse(&subject), Some((trace.clone(), token)));
    }
    for wrong in [
        "",
        "tracepoint",
        "tracepoint.a.b",
        "tracepoint.a.b.c.d",
        "other.a.b.c",
        "tracepoint.a.=2e.c",
        "tracepoint.a.b.*",
    ] {
        assert_eq!(TraceSubject::parse(wrong), None, "{wrong}");
    }
    assert_eq!(message_id(uuid, "0.1.2"), format!("{}.0.1.2", "ab".repeat(16)));
}

#[test]
fn messages_are_decoded_and_damaged_ones_are_refused() {
    let names = ["host", "s", "p", "c", "c_1"];
    let hello = Hello {
        version: 1,
        udp: false,
        key: [1; 16],
        trace: [1; 16],
        clock: [2; 16],
        nonce: [0; 32],
        sync_interval: 1000,
        mtu: 0,
        resend_buffer: 0,
        host: "host",
        session: "s",
        process: "p",
    };
    let sent = [
        ToCollector::Hello(hello),
        ToCollector::Metadata(Piece { offset: 0, bytes: b"/* CTF 1.8 */" }),
        ToCollector::Announce(Announce { request: 0, class: 0, instance: 1, packet_size: 4096, names }),
        ToCollector::Close(Close { whole: true, entries: Vec::new() }),
    ];
    let mut payload = Vec::new();
    for frame in &sent {
        frame.encode(&mut payload);
    }
    let Ok(Message::Frames(frames)) = Message::decode(&Token::Control, &payload) else { panic!("frames") };
    assert_eq!(frames, sent);
    for end in 1..payload.len() {
        if let Ok(frames) = control_frames(&payload[..end]) {
            assert_eq!(frames, sent[..frames.len()], "{end}");
        }
    }
    let route = Route { handle: 3, seq: 8, prev_seq: 7, circuit_id: 0 };
    let head = wire_head(&[5; 96], route).expect("a packet");
    let packet = [&head[..], &[5; 64]].concat();
    let stream = Token::Stream("c_1".to_owned());
    assert_eq!(Message::decode(&stream, &packet), Ok(Message::Packet(route, &packet[..])));
    let moved = with_handle(&packet, 77);
    assert_eq!(Message::decode(&stream, &moved), Ok(Message::Packet(Route { handle: 77, ..route }, &moved[..])));
    assert!(Message::decode(&stream, &packet[..40]).is_err());
    assert_eq!(with_handle(&[1; 10], 5), [1; 10]);
}

#[test]
fn brokers_are_parsed_and_shown_without_passwords() {
    for (text, servers, replicas, shown) in [
        ("nats://vm", 1, 1, "nats://vm"),
        ("nats://me:secret@vm:4333?replicas=3", 1, 3, "nats://vm:4333"),
        ("nats://a,tls://tok@[::1]:9", 2, 1, "nats://a,tls://[::1]:9"),
    ] {
        let broker: Broker = text.parse().expect(text);
        assert_eq!((broker.servers().len(), broker.replicas()), (servers, replicas), "{text}");
        assert_eq!(broker.to_string(), shown);
        assert!(!format!("{broker:?}").contains("secret"));
    }
    for wrong in [
        "",
        "vm",
        "nats://",
        "nats://vm:0",
        "nats://vm:x",
        "nats://vm?replicas=9",
        "nats://vm?x",
        "nats://a, nats://b",
        "nats://vm/x",
    ] {
        assert!(wrong.parse::<Broker>().is_err(), "{wrong}");
    }
}

#[test]
fn brokers_with_a_server_in_common_are_found_whatever_else_their_urls_have() {
    let broker = |text: &str| text.parse::<Broker>().expect("a broker");
    let one = broker("nats://a,nats://user:pass@B:4223");
    for same in ["nats://a:4222", "tls://token@A", "nats://c,nats://b:4223?replicas=3"] {
        assert!(one.shares_server_with(&broker(same)) && broker(same).shares_server_with(&one), "{same}");
    }
    for other in ["nats://b", "nats://a:4223", "nats://[::1]:4222"] {
        assert!(!one.shares_server_with(&broker(other)), "{other}");
    }
    assert!(broker("nats://[::1]").shares_server_with(&broker("nats://[::1]:4222")));
}

/// Two programs publish a trace: a sender, and a collector that it sends to.
#[test]
fn what_is_published_has_the_subjects_and_ids_of_its_trace() {
    let hello = Hello {
        version: 1,
        udp: true,
        key: [9; 16],
        trace: [0xab; 16],
        clock: [3; 16],
        nonce: [4; 32],
        sync_interval: 100,
        mtu: 1400,
        resend_buffer: 5,
        host: "web.1",
        session: "shop",
        process: "till-1-2",
    };
    let of = Publication::new(&hello);
    let uuid = "ab".repeat(16);
    let trace = "tracepoint.web=2E1.shop-till-1-2-abababab";
    let begun = of.hello();
    assert_eq!((begun.subject, begun.id), (format!("{trace}.=hello"), format!("{uuid}.hello")));
    // Information about the connection to a collector is not published.
    let expected = Hello { udp: false, key: [0xab; 16], nonce: [0; 32], mtu: 0, ..hello.clone() };
    assert_eq!(control_frames(&begun.payload), Ok(vec![ToCollector::Hello(expected)]));
    let metadata = of.metadata(Piece { offset: 10, bytes: b"five!" });
    assert_eq!((metadata.subject, metadata.id), (format!("{trace}.=control"), format!("{uuid}.metadata.10.15")));
    let packet: Vec<u8> = (0..100).collect();
    let published = of.packet((3, 9), "c_9", Route { handle: 1, seq: 7, prev_seq: 6, circuit_id: 0 }, &packet);
    assert_eq!((published.subject, published.id), (format!("{trace}.c_9"), format!("{uuid}.3.9.7")));
    let [head, rest] = stored_packet(&published.payload).expect("a packet");
    assert_eq!([head, rest].concat(), packet);
    let syncs = of.sync(8, 99, &vec![SyncEntry { handle: 0, last: 1, time: 2 }; 2049]);
    assert_eq!(
        syncs.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
        [format!("{uuid}.sync.8.0"), format!("{uuid}.sync.8.1")]
    );
    let closes = of.close(&[]);
    assert_eq!((closes.len(), closes[0].id.clone()), (1, format!("{uuid}.close.0")));
    let account = of.account(&vec![b' '; LONGEST_PIECE + 1]);
    assert_eq!(
        account.iter().map(|it| it.id.clone()).collect::<Vec<_>>(),
        [format!("{uuid}.account.0"), format!("{uuid}.account.{LONGEST_PIECE}")]
    );
}
