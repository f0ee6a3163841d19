use super::*;
use crate::net::stream::{Announce, Close, Hello, Piece, Route, ToCollector, wire_head};

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
    assert!(Broker::is_url("nats://x") && Broker::is_url("tls://x") && !Broker::is_url("vm:5342"));
}
