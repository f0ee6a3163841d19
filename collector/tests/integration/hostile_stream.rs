//! Senders that violate the stream protocol: their connection or session ends, and the others continue.

use super::running::Running;
use super::sender::{connect, is_closed};
use super::stream_sender::{Data, METADATA, StreamSender, packet};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use tempfile::TempDir;
use tracepoint_collector::{Addresses, Options};
use tracepoint_wire::relay::{Command, MINOR, Version};
use tracepoint_wire::stream::{
    Announce, Attach, Capabilities, Close, ClosedStream, Datagram, DatagramHeader, FRAME_HEADER, FrameHeader, Hello,
    NO_BOUND, NO_SEQ, Piece, RecordHeader, SeqRange, Sync, SyncEntry, ToCollector,
};

fn place() -> (TempDir, Running) {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = Running::below(&place.path().join("out"));
    (place, collector)
}

/// Runs an ordinary session; all its packets are stored.
fn ordinary(addresses: &Addresses, key: u8) {
    let mut sender = StreamSender::open(addresses.control, addresses.data, key, None);
    let (handle, next) = sender.announce(0);
    assert_eq!(next, 0);
    sender.say_metadata(0, METADATA);
    (0..5).for_each(|seq| sender.send(handle, seq, packet(0, seq, 160)));
    sender.sync(5000);
    let closed = sender.close();
    assert_eq!((closed[0].packets, closed[0].packets_lost), (5, 0));
}

/// Opens a control connection and switches it to the stream protocol.
pub(crate) fn negotiated(addresses: &Addresses) -> TcpStream {
    let mut stream = connect(addresses.control);
    let mut bytes = Vec::new();
    Command::Version(Version { major: 2, minor: MINOR }).encode(MINOR, &mut bytes);
    let flags = Capabilities::new(true, false).flags();
    Command::GetConfiguration { flags }.encode(MINOR, &mut bytes);
    stream.write_all(&bytes).expect("the collector reads");
    std::io::Read::read_exact(&mut stream, &mut [0; 20]).expect("two answers");
    stream
}

pub(crate) fn hello<'a>(key: u8, host: &'a str, session: &'a str, process: &'a str) -> ToCollector<'a> {
    ToCollector::Hello(Hello {
        version: 1,
        udp: false,
        key: [key; 16],
        trace: [1; 16],
        clock: [2; 16],
        nonce: [3; 32],
        sync_interval: 100,
        mtu: 1400,
        resend_buffer: 0,
        host,
        session,
        process,
    })
}

pub(crate) fn say(stream: &mut TcpStream, message: &ToCollector<'_>) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    // The collector may have closed the connection already.
    let _ = stream.write_all(&bytes);
}

/// Returns whether the collector closes the connection, possibly after further messages.
fn ends(stream: &mut TcpStream) -> bool {
    std::io::copy(stream, &mut std::io::sink())
        .map_or_else(|error| error.kind() != std::io::ErrorKind::WouldBlock, |_| true)
}

/// Lists all files and directories below one, by path.
fn below(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut all = Vec::new();
    for path in entries {
        all.push(path.display().to_string());
        if path.is_dir() {
            all.extend(below(&path));
        }
    }
    all
}

#[test]
fn names_stay_below_the_output() {
    let (place, collector) = place();
    let evil =
        ["../../evil", "/evil", ".evil", "..", "a/../../evil", "a\u{1b}[2Jb\n", "e\u{202e}vil", &"x".repeat(255)];
    for (number, name) in (0..).zip(evil) {
        for names in [[name, "s", "p"], ["h", name, "p"], ["h", "s", name]] {
            let mut stream = negotiated(&collector.addresses);
            let [host, session, process] = names;
            say(&mut stream, &hello(100 + number, host, session, process));
            let names = [host, session, process, "c", name];
            say(
                &mut stream,
                &ToCollector::Announce(Announce { request: 1, class: 3, instance: 0, packet_size: 4096, names }),
            );
            say(&mut stream, &ToCollector::GiveUp);
            assert!(ends(&mut stream));
        }
    }
    ordinary(&collector.addresses, 1);
    let entries = below(place.path());
    assert!(!entries.iter().any(|path| path.contains(char::is_control)), "{entries:#?}");
    assert_eq!(std::fs::read_dir(place.path()).expect("the place").count(), 1, "{entries:#?}");
    collector.end();
}

#[test]
fn wrong_orders_and_sizes_end_one_session_only() {
    let (_place, collector) = place();
    let addresses = collector.addresses;
    let piece = |offset, bytes| Piece { offset, bytes };
    let sync = |entries| ToCollector::Sync(Sync { number: 1, time: 1, offset: i64::MIN, bound: NO_BOUND, entries });
    let announce =
        |packet_size, names| ToCollector::Announce(Announce { request: 1, class: 3, instance: 0, packet_size, names });
    let names = ["host", "shop", "till", "c", "c_0"];
    // Messages before HELLO, and after it, and whether they end the connection.
    let before = [ToCollector::GiveUp, announce(4096, names), sync(Vec::new()), ToCollector::Metadata(piece(0, b"x"))];
    for message in before {
        let mut stream = negotiated(&addresses);
        say(&mut stream, &message);
        assert!(ends(&mut stream), "{message:?}");
    }
    let entry = SyncEntry { handle: 999, last: 7, time: u64::MAX };
    let end = ClosedStream { handle: 999, last: u64::MAX - 1, packets: u64::MAX, events_after: u64::MAX };
    let after = [
        (hello(9, "host", "shop", "till"), true),
        (ToCollector::Metadata(piece(1, b"x")), true),
        (ToCollector::Metadata(piece(u64::MAX, b"x")), true),
        (ToCollector::Account(piece(1, b"x"), 2), true),
        (ToCollector::Account(piece(0, b"x"), u64::MAX), true),
        (announce(4096, ["host", "shop", "till", "c", "metadata"]), true),
        (announce(u32::MAX, names), true),
        (sync(vec![entry; 3]), false),
        (ToCollector::Gone(SeqRange { handle: 999, first: 9, last: 3 }), false),
        (ToCollector::Gone(SeqRange { handle: 1, first: 0, last: u64::MAX }), false),
        (ToCollector::Close(Close { whole: true, entries: vec![end; 3] }), false),
        (ToCollector::GiveUp, true),
    ];
    for (message, is_end) in after {
        let mut stream = negotiated(&addresses);
        say(&mut stream, &hello(9, "host", "shop", "till"));
        say(&mut stream, &message);
        if !is_end {
            say(&mut stream, &ToCollector::GiveUp);
        }
        assert!(ends(&mut stream), "{message:?}");
    }
    for header in [
        FrameHeader { kind: 0x5450_0001, size: usize::MAX >> 1 },
        FrameHeader { kind: 0x5450_0001, size: 1 << 24 },
        FrameHeader { kind: 0x5450_0099, size: 0 },
        FrameHeader { kind: 5, size: 0 },
    ] {
        let mut stream = negotiated(&addresses);
        let mut bytes = [0; FRAME_HEADER];
        bytes[8..16].copy_from_slice(&(header.size as u64).to_be_bytes());
        bytes[16..20].copy_from_slice(&header.kind.to_be_bytes());
        stream.write_all(&bytes).expect("the collector reads");
        assert!(ends(&mut stream), "{header:?}");
    }
    ordinary(&addresses, 1);
    collector.end();
}

#[test]
fn data_of_one_sender_do_not_reach_another() {
    let (_place, mut collector) = place();
    let addresses = collector.addresses;
    let mut victim = StreamSender::open(addresses.control, addresses.data, 1, None);
    let (handle, _) = victim.announce(0);
    victim.say_metadata(0, METADATA);
    let mut evil = StreamSender::open(addresses.control, addresses.data, 2, None);
    let (_, _, token) = evil.welcome.expect("a welcome");
    // A packet for a handle of the other session, a damaged one, impossible sizes.
    for bytes in [
        {
            evil.transmit(handle, 0, NO_SEQ, &packet(0, 0, 160), None);
            Vec::new()
        },
        RecordHeader { size: 70 }.encode().iter().copied().chain([0; 70]).collect(),
        RecordHeader { size: u32::MAX }.encode().to_vec(),
        RecordHeader { size: 1 }.encode().to_vec(),
        RecordHeader { size: 100 << 20 }.encode().to_vec(),
    ] {
        let mut data = match &mut evil.data {
            Data::Tcp(stream) if bytes.is_empty() => stream.try_clone().expect("a socket"),
            _ => connect(addresses.data),
        };
        if !bytes.is_empty() {
            data.write_all(&Attach { token }.encode()).expect("the collector reads");
            data.write_all(&bytes).expect("the collector reads");
        }
        assert!(is_closed(&mut data), "{bytes:?}");
    }
    (0..5).for_each(|seq| victim.send(handle, seq, packet(0, seq, 160)));
    victim.until(|sender| sender.next.get(&handle) == Some(&5));
    let closed = victim.close();
    assert_eq!((closed[0].packets, closed[0].packets_lost), (5, 0));
    evil.say(&ToCollector::GiveUp);
    collector.until(|report| report.sessions == 0);
}

/// Packets that stay incomplete take only part of the memory, and leave the rest to other senders.
#[test]
fn parts_of_packets_do_not_take_all_memory() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let memory = 16 << 20;
    let mut collector = Running::with(Options { memory, ..Options::new(place.path()) });
    let addresses = collector.addresses;
    let network = super::stream_sender::Network::new(1, 0);
    let mut evil = StreamSender::open(addresses.control, addresses.data, 2, Some(network));
    let (handle, _) = evil.announce(0);
    let (_, _, token) = evil.welcome.expect("a welcome");
    let Data::Udp { socket, to, .. } = &evil.data else { panic!("it has datagrams") };
    for seq in 0..100 {
        let header =
            DatagramHeader { probe: false, handle, seq, total: 1 << 20, unit: 1000, ..DatagramHeader::probe(token) };
        let datagram = [&header.encode()[..], &[0; 1000]].concat();
        assert!(Datagram::decode(&datagram).is_ok());
        socket.send_to(&datagram, to).expect("a datagram");
    }
    let report = collector.until(|report| report.memory > 0);
    assert!(report.memory <= memory / 2, "{report:?}");
    ordinary(&addresses, 1);
    evil.say(&ToCollector::GiveUp);
    collector.until(|report| report.sessions == 0 && report.memory == 0);
}
