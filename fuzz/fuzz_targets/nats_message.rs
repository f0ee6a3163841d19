//! Any bytes as a message of a NATS broker: a subject up to the first line feed, and a payload. Parsing and composing a subject gives the same
//! subject; escaped names are restored.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_wire::nats::{Broker, Message, Token, TraceSubject, escaped, unescaped, with_handle};

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (subject, payload) = (String::from_utf8_lossy(&bytes[..end]), bytes.get(end + 1..).unwrap_or_default());
    let token = escaped(&subject);
    assert!(token.bytes().all(|byte| byte.is_ascii_graphic() && !b".*>".contains(&byte)), "{token}");
    assert_eq!(unescaped(&token).as_deref(), Some(&*subject));
    if let Ok(broker) = subject.parse::<Broker>() {
        assert!(!broker.servers().is_empty() && broker.to_string().starts_with(['n', 't']));
    }
    let tokens = match TraceSubject::parse(&subject) {
        Some((trace, token)) => {
            assert_eq!(trace.subject(&token), subject);
            vec![token]
        }
        None => vec![Token::Control, Token::Stream("c_0".to_owned())],
    };
    for token in tokens {
        match Message::decode(&token, payload) {
            Ok(Message::Frames(frames)) => {
                let mut encoded = Vec::new();
                frames.iter().for_each(|frame| frame.encode(&mut encoded));
                assert_eq!(Message::decode(&token, &encoded), Ok(Message::Frames(frames)));
            }
            Ok(Message::Packet(route, packet)) => {
                let moved = with_handle(packet, !route.handle);
                let Ok(Message::Packet(other, _)) = Message::decode(&token, &moved) else { panic!("a packet") };
                assert_eq!((other.handle, other.seq), (!route.handle, route.seq));
            }
            _ => {}
        }
    }
});
