//! Broken or malicious relays: the view ends with an error that gives the reason, within its limits.

use super::relay::{Random, Socket, attached, bytes_of, opening, stream, view_all};
use crate::hand::one_event;
use crate::seed;
use std::io::{Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracepoint_reader::Item;
use tracepoint_reader::live::{LiveError, LiveOptions, LiveUrl, LiveView, list_sessions};
use tracepoint_wire::live::{
    Connect, Index, IndexStatus, MetadataBytes, MetadataStatus, NEW_METADATA, NEW_STREAM, NewStreamsStatus,
    PacketBytes, PacketStatus, Request, StreamRecord, Streams,
};

/// A correct relay, except for the answers of `hostile`: metadata, one data stream, and a packet that is always the next.
fn except(hostile: impl Fn(Request) -> Option<Vec<u8>>) -> impl FnMut(Request) -> Vec<u8> {
    let mut metadata = Some(one_event("u8 x;"));
    move |request| {
        if let Some(reply) = hostile(request).or_else(|| opening(request)) {
            return reply;
        }
        bytes_of(|out| match request {
            Request::Attach { .. } => out.extend(attached(vec![stream(1, true), stream(2, false)])),
            Request::Metadata { .. } => match metadata.take() {
                Some(text) => MetadataBytes { status: MetadataStatus::Ok, bytes: text.as_bytes() }.encode(out),
                None => MetadataBytes::only(MetadataStatus::Nothing).encode(out),
            },
            Request::NewStreams { .. } => Streams::none(NewStreamsStatus::Nothing).encode(out),
            Request::NextIndex { .. } => Index { packet_bits: 8192, ..Index::only(IndexStatus::Ok) }.encode(out),
            _ => {}
        })
    }
}

fn error_of(hostile: impl Fn(Request) -> Option<Vec<u8>>) -> LiveError {
    let mut options = LiveOptions::default();
    options.silence = Duration::from_millis(50);
    let (items, ended) = view_all(Socket::new(except(hostile)), &options);
    assert!(items.is_empty(), "{items:?}");
    ended.unwrap_err()
}

#[test]
fn endless_metadata_is_refused() {
    let piece = vec![b' '; 4 << 20];
    let error = error_of(|request| {
        let reply = MetadataBytes { status: MetadataStatus::Ok, bytes: &piece };
        matches!(request, Request::Metadata { .. }).then(|| bytes_of(|out| reply.encode(out)))
    });
    assert!(matches!(error, LiveError::TooMuch { what: "bytes of metadata", .. }), "{error}");
}

/// Metadata that never becomes readable: the wait for it is bounded, and the end of the session is not a success.
#[test]
fn metadata_that_cannot_be_read_is_told() {
    for ends in [false, true] {
        let text = std::cell::Cell::new(Some("/* CTF 1.8 */ trace { major = 1"));
        let socket = Socket::new(except(|request| match request {
            Request::Metadata { .. } => Some(bytes_of(|out| match text.take() {
                Some(text) => MetadataBytes { status: MetadataStatus::Ok, bytes: text.as_bytes() }.encode(out),
                None => MetadataBytes::only(MetadataStatus::Nothing).encode(out),
            })),
            Request::NewStreams { .. } if ends => {
                Some(bytes_of(|out| Streams::none(NewStreamsStatus::Hup).encode(out)))
            }
            _ => None,
        }));
        let mut options = LiveOptions::default();
        options.metadata_wait = if ends { Duration::MAX } else { Duration::from_millis(10) };
        let (items, ended) = view_all(socket, &options);
        let [Item::Damage(damage)] = &items[..] else { panic!("{items:?}") };
        assert!(damage.file.ends_with("channel0_2") && damage.to_string().contains("cannot be read"), "{damage}");
        assert_eq!(matches!(ended, Err(LiveError::Metadata { .. })), !ends, "{ended:?}");
        assert_eq!(ended.is_ok(), ends);
    }
}

#[test]
fn absurd_sizes_are_refused_before_they_arrive() {
    for (command, reply) in [
        (2, vec![0xff; 4]),
        (3, [[0, 0, 0, 1], [0xff; 4]].concat()),
        (7, [[0, 0, 0, 1], [0xff; 4]].concat()),
        (6, [vec![0xff; 8], vec![0, 0, 0, 1]].concat()),
        (5, [[0, 0, 0, 1], [0xff; 4], [0; 4]].concat()),
        (5, [[0, 0, 0, 1], [0, 0, 4, 1], [0; 4]].concat()),
    ] {
        let error = error_of(|request| {
            let mut encoded = Vec::new();
            request.encode(&mut encoded);
            (encoded[11] == command).then(|| reply.clone())
        });
        assert!(matches!(error, LiveError::Malformed(_)), "command {command}: {error}");
    }
    let huge = |bits| {
        move |request| {
            let index = Index { packet_bits: bits, ..Index::only(IndexStatus::Ok) };
            matches!(request, Request::NextIndex { .. }).then(|| bytes_of(|out| index.encode(out)))
        }
    };
    for bits in [u64::MAX, 1 << 60, ((256 << 20) + 1) * 8] {
        assert!(matches!(error_of(huge(bits)), LiveError::TooMuch { what: "bytes of a packet", .. }));
    }
}

#[test]
fn silence_and_the_end_of_the_connection_are_errors() {
    for command in 1..=8_u8 {
        let silent = |request: Request| {
            let mut encoded = Vec::new();
            request.encode(&mut encoded);
            (encoded[11] == command).then(Vec::new)
        };
        let error = error_of(silent);
        assert!(matches!(error, LiveError::Silent(_)), "command {command}: {error}");
        let mut socket = Socket::new(except(silent));
        socket.closes = true;
        let (_, ended) = view_all(socket, &LiveOptions::default());
        assert!(matches!(ended, Err(LiveError::Connection(_))), "command {command}: {ended:?}");
    }
}

#[test]
fn replies_without_contents_are_errors() {
    let index = |request, status, flags| {
        matches!(request, Request::NextIndex { .. })
            .then(|| bytes_of(|out| Index { flags, ..Index::only(status) }.encode(out)))
    };
    let packet = |request, status, flags| {
        matches!(request, Request::Packet { .. }).then(|| bytes_of(|out| PacketBytes::only(status, flags).encode(out)))
    };
    let metadata = |request, status| {
        matches!(request, Request::Metadata { .. }).then(|| bytes_of(|out| MetadataBytes::only(status).encode(out)))
    };
    let streams = |request, status| {
        matches!(request, Request::NewStreams { .. }).then(|| bytes_of(|out| Streams::none(status).encode(out)))
    };
    let errors = [
        error_of(|request| index(request, IndexStatus::Error, 0)),
        error_of(|request| packet(request, PacketStatus::Ok, 0)),
        error_of(|request| packet(request, PacketStatus::Error, 0)),
        error_of(|request| packet(request, PacketStatus::Error, NEW_METADATA | NEW_STREAM)),
        error_of(|request| metadata(request, MetadataStatus::Ok)),
        error_of(|request| streams(request, NewStreamsStatus::Error)),
    ];
    for error in errors {
        assert!(matches!(error, LiveError::Relay(_)), "{error}");
    }
    let retries = error_of(|request| packet(request, PacketStatus::Retry, 0));
    assert!(matches!(retries, LiveError::Silent(_)), "{retries}");
}

#[test]
fn another_version_is_refused() {
    let connect = Connect { major: 3, ..Connect::relay(1) };
    let error = error_of(|request| matches!(request, Request::Connect(_)).then(|| bytes_of(|out| connect.encode(out))));
    assert!(matches!(error, LiveError::Version { major: 3, .. }), "{error}");
}

#[test]
fn names_cannot_control_a_terminal() {
    let named = |request| {
        let record = StreamRecord { channel: "a\u{1b}[2Jb".to_owned(), ..stream(2, false) };
        matches!(request, Request::Attach { .. }).then(|| attached(vec![stream(1, true), record]))
    };
    let mut rounds = 0;
    let mut honest = except(named);
    let socket = Socket::new(|request| match request {
        Request::Packet { length, .. } => {
            let garbage = vec![0; length as usize];
            bytes_of(|out| PacketBytes { status: PacketStatus::Ok, flags: 0, bytes: &garbage }.encode(out))
        }
        Request::NextIndex { .. } if rounds > 0 => Vec::new(),
        Request::NextIndex { .. } => {
            rounds += 1;
            honest(request)
        }
        _ => honest(request),
    });
    let mut options = LiveOptions::default();
    options.silence = Duration::from_millis(50);
    let (items, _) = view_all(socket, &options);
    let [Item::Damage(damage)] = &items[..] else { panic!("{items:?}") };
    assert!(damage.file.ends_with("a?[2Jb"), "{damage}");
}

#[test]
fn any_replies_are_survived() {
    for seed in seed::campaign(150) {
        let mut random = Random(seed);
        let mut honest = except(|_| None);
        let mut left = 300;
        // Well-formed replies with random numbers in them, and some random bytes.
        let mut socket = Socket::new(|request| {
            left -= 1;
            if left < 0 {
                return Vec::new();
            }
            let mut reply = honest(request);
            if opening(request).is_none() && random.below(3) == 0 && !reply.is_empty() {
                let place = random.below(reply.len().min(64) as u64) as usize;
                reply[place] = random.below(8) as u8;
            }
            match request {
                Request::Packet { length, .. } => bytes_of(|out| {
                    let bytes: Vec<u8> = (0..length.min(100)).map(|_| random.below(256) as u8).collect();
                    PacketBytes { status: PacketStatus::Ok, flags: 0, bytes: &bytes }.encode(out);
                }),
                _ => reply,
            }
        });
        socket.closes = true;
        let mut options = LiveOptions::default();
        options.silence = Duration::from_millis(20);
        let (_, ended) = view_all(socket, &options);
        assert!(ended.is_err(), "seed {seed}");
    }
}

#[test]
fn a_view_of_a_silent_relay_can_be_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url: LiveUrl = format!("net://{}/host/web/shop", listener.local_addr().unwrap()).parse().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut options = LiveOptions::default();
    options.stop = Arc::clone(&stop);
    let view = thread::spawn(move || LiveView::<TcpStream>::open(&url, &options).map(drop));
    let (mut socket, _) = listener.accept().unwrap();
    let mut request = [0; 36];
    socket.read_exact(&mut request).unwrap();
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(view.join().unwrap(), Err(LiveError::Stopped)));
    let closed: LiveUrl = "net://127.0.0.1:1".parse().unwrap();
    assert!(matches!(list_sessions(&closed, &LiveOptions::default()), Err(LiveError::Connect { .. })));
}

#[test]
fn another_program_is_not_taken_for_a_relay() {
    struct Ssh(Cursor<&'static [u8]>);
    impl Read for Ssh {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(bytes)
        }
    }
    impl Write for Ssh {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (_, ended) = view_all(Ssh(Cursor::new(b"SSH-2.0-OpenSSH_10.0\r\n")), &LiveOptions::default());
    assert!(matches!(ended, Err(LiveError::Version { .. })), "{ended:?}");
}
