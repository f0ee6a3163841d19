//! Hostile and broken peers do no harm: after each of them, an ordinary session is stored completely.

use super::running::Running;
use super::sender::{METADATA, Sender, connect, connect_from, is_closed, packet, session, stream};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use tempfile::TempDir;
use tracepoint_collector::Options;
use tracepoint_wire::live::{
    AttachStatus, Connect, IndexStatus, MetadataStatus, NewStreamsStatus, PacketStatus, Request, Seek, Status,
};
use tracepoint_wire::relay::{
    AddStream, Command, ControlHeader, CreateSession, DataHeader, Index, MINOR, Reply, ReturnCode, RotateStreams,
    Version,
};

/// Runs an ordinary session of one stream with these packets.
fn ordinary(collector: &mut Running, output: &Path, name: &str) {
    let mut sender = Sender::connect(&collector.addresses);
    let path = sender.open(session(name));
    let (handle, metadata) = (sender.add(stream("c_0")), sender.add(stream("metadata")));
    let mut bytes = Vec::new();
    Command::SendMetadata { handle: metadata, padding: 0, bytes: METADATA.as_bytes() }.encode(MINOR, &mut bytes);
    sender.control.write_all(&bytes).expect("the collector takes metadata");
    for sequence in 0..5 {
        sender.packet(handle, sequence);
    }
    sender.done(&Command::CloseStream { handle, last: 4 });
    drop(sender);
    let directory = output.join(path).join("trace");
    collector.until(|_| !directory.parent().expect("a parent").join(".collecting").exists());
    assert_eq!(std::fs::read(directory.join("c_0")).expect("a file").len(), 5 * 4096);
    assert_eq!(std::fs::read_to_string(directory.join("metadata")).expect("a file"), METADATA);
}

/// A violation by a peer whose session has a stream.
type Wrong<'a> = (&'a str, Box<dyn Fn(&mut Sender, u64) + 'a>);

fn place() -> (TempDir, Running) {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = Running::below(&place.path().join("out"));
    (place, collector)
}

#[test]
fn names_do_not_lead_out_of_the_output() {
    let (place, mut collector) = place();
    let long = "x".repeat(300);
    for name in ["../evil", "/evil", ".evil", "a/b", "", "a\u{1b}[2Jb", "..", &long] {
        for (name, host, base) in [(name, "host", ""), ("name", name, ""), ("name", "host", name)] {
            // A base path may have several components, and an empty one is ignored.
            if ["/evil", "a/b", ""].contains(&base)
                && !(name.is_empty() || host.is_empty())
                && (name, host) == ("name", "host")
            {
                continue;
            }
            let mut sender = Sender::connect(&collector.addresses);
            sender.command(&Command::Version(Version { major: 2, minor: 13 })).expect("a version");
            let create =
                CreateSession { name: name.into(), host: host.into(), base_path: base.into(), ..session("name") };
            let reply = sender.command(&Command::CreateSession(create)).expect("a reply");
            let refused = Reply::Session { id: 0, code: ReturnCode::Fatal, path: String::new() };
            assert_eq!(reply, refused, "{name:?} {host:?} {base:?}");
            // The connection remains usable, as with the stock daemon.
            let create = Command::CreateSession(CreateSession { host: "other".into(), ..session("name") });
            assert!(matches!(sender.command(&create), Ok(Reply::Session { code: ReturnCode::Ok, .. })));
        }
    }
    let mut sender = Sender::connect(&collector.addresses);
    sender.open(session("streams"));
    for (channel, path) in [
        ("../c", "trace"),
        ("a/b", "trace"),
        ("", "trace"),
        ("c", "../../evil"),
        ("c", "a/../b"),
        ("c", "."),
        ("c", ""),
        (&long, "trace"),
        ("c", &long),
        ("c", &"d/".repeat(1000)),
    ] {
        let add = AddStream { channel: channel.into(), path: path.into(), ..AddStream::default() };
        let refused = Reply::Stream { handle: u64::MAX, code: ReturnCode::Unknown };
        assert_eq!(sender.command(&Command::AddStream(add)).expect("a reply"), refused, "{channel:?} {path:?}");
    }
    ordinary(&mut collector, &place.path().join("out"), "after");
    let entries: Vec<_> = std::fs::read_dir(place.path()).expect("the place").collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let (_, messages) = collector.end();
    assert!(messages.iter().any(|message| message.contains("has 300 bytes, and at most ")), "{messages:?}");
}

#[test]
fn equal_names_share_nothing() {
    let (place, collector) = place();
    let mut senders: Vec<_> = (0..3).map(|_| Sender::connect(&collector.addresses)).collect();
    let paths: Vec<_> = senders.iter_mut().map(|sender| sender.open(session("same"))).collect();
    assert_eq!(paths, ["host/same", "host/same-2", "host/same-3"]);
    for (number, sender) in senders.iter_mut().enumerate() {
        let handle = sender.add(stream("c_0"));
        (0..=number as u64).for_each(|sequence| sender.packet(handle, sequence));
        // The same stream twice would be two writers of one file.
        let again = sender.command(&Command::AddStream(stream("c_0"))).expect("a reply");
        assert_eq!(again, Reply::Stream { handle: u64::MAX, code: ReturnCode::Unknown });
    }
    drop(senders);
    collector.end();
    for (number, path) in paths.iter().enumerate() {
        let file = place.path().join("out").join(path).join("trace/c_0");
        assert_eq!(file.metadata().expect("a file").len(), 4096 * (number as u64 + 1));
    }
}

#[test]
fn wrong_orders_and_sizes_end_one_connection_only() {
    let (place, mut collector) = place();
    let addresses = collector.addresses;
    let output = place.path().join("out");
    let raw = |bytes: &[u8]| {
        let mut stream = connect(addresses.control);
        stream.write_all(bytes).expect("the collector reads");
        assert!(is_closed(&mut stream), "{bytes:02x?}");
    };
    let header = |size, command| ControlHeader { size, command, ..ControlHeader::default() }.encode();
    raw(&header(u64::MAX, 5));
    raw(&header(0, 5));
    raw(&header(0, 16));
    raw(&[0xff; 24]);
    raw(b"GET / HTTP/1.1\r\nHost: collector\r\n\r\n");
    let (bytes, index) = packet(1, 1, 0, 4096);
    let command = |command: Command<'static>| move |sender: &mut Sender, _: u64| drop(sender.command(&command));
    let wrongs: Vec<Wrong<'_>> = vec![
        ("a second session kills the stock daemon", Box::new(command(Command::CreateSession(session("second"))))),
        ("a second VERSION", Box::new(command(Command::Version(Version { major: 2, minor: 4 })))),
        ("an index of no stream", Box::new(command(Command::SendIndex(Index { handle: 999, ..index })))),
        ("the end of no stream", Box::new(command(Command::CloseStream { handle: 999, last: 0 }))),
        ("a question about no stream", Box::new(command(Command::DataPending { handle: 999, last: 0 }))),
        (
            "a rotation into no chunk",
            Box::new(move |sender, handle| {
                let rotation = RotateStreams { chunk: Some(9), streams: vec![(handle, 0)] };
                drop(sender.command(&Command::RotateStreams(rotation)));
            }),
        ),
        (
            "metadata for a stream of packets",
            Box::new(move |sender, handle| {
                let mut bytes = Vec::new();
                Command::SendMetadata { handle, padding: 0, bytes: b"x" }.encode(MINOR, &mut bytes);
                sender.control.write_all(&bytes).expect("the collector reads");
            }),
        ),
        (
            "an unknown command",
            Box::new(move |sender, _| {
                sender.control.write_all(&header(0, 4)).expect("the collector reads");
                let mut reply = [0; 4];
                sender.control.read_exact(&mut reply).expect("a reply");
                assert_eq!(reply, 11_u32.to_be_bytes());
            }),
        ),
    ];
    for (number, (what, wrong)) in wrongs.iter().enumerate() {
        let mut sender = Sender::connect(&addresses);
        sender.open(session(&format!("wrong-{number}")));
        let handle = sender.add(stream("c_0"));
        sender.packet(handle, 0);
        wrong(&mut sender, handle);
        assert!(is_closed(&mut sender.control), "{what}");
    }
    for header in [
        DataHeader { handle: 999, size: 4, ..DataHeader::default() },
        DataHeader { handle: 1, size: u32::MAX, ..DataHeader::default() },
        DataHeader { handle: 1, padding: u32::MAX, ..DataHeader::default() },
        DataHeader { handle: u64::MAX, sequence: u64::MAX, size: u32::MAX, padding: u32::MAX, circuit_id: u64::MAX },
    ] {
        let mut data = connect(addresses.data);
        data.write_all(&header.encode()).expect("the collector reads");
        assert!(is_closed(&mut data), "{header:?}");
    }
    drop(bytes);
    ordinary(&mut collector, &output, "after");
}

#[test]
fn packets_of_any_order_are_stored_in_the_order_of_indexes() {
    let (place, collector) = place();
    let mut sender = Sender::connect(&collector.addresses);
    let path = sender.open(session("order"));
    let handle = sender.add(stream("c_0"));
    let mut other = Sender { control: connect(collector.addresses.control), data: connect(collector.addresses.data) };
    let all: Vec<_> = (0..20).map(|sequence| packet(handle, handle, sequence, 512)).collect();
    for (_, index) in &all[..10] {
        sender.done(&Command::SendIndex(*index));
    }
    // In reverse order, over another connection, and some twice.
    for sequence in (0..20_u64).rev() {
        let data = if sequence % 2 == 0 { &mut sender } else { &mut other };
        data.data(handle, sequence, &all[sequence as usize].0).expect("the collector reads");
        data.data(handle, sequence, &all[sequence as usize].0).expect("the collector reads");
    }
    for (_, index) in &all[10..] {
        sender.done(&Command::SendIndex(*index));
    }
    let pending = Command::DataPending { handle, last: 19 };
    while sender.command(&pending).expect("a reply") != Reply::Pending(tracepoint_wire::relay::DataPending::No) {}
    // A late packet never reaches the file.
    sender.data(handle, 3, &all[3].0).expect("the collector reads");
    sender.done(&Command::CloseStream { handle, last: 19 });
    drop(sender);
    let (counts, messages) = collector.end();
    let expected = all.iter().map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>().concat();
    assert_eq!(std::fs::read(place.path().join("out").join(path).join("trace/c_0")).expect("a file"), expected);
    assert!(counts.late >= 20 && counts.stored == 20 && counts.missing == 0, "{counts:?} {messages:?}");
}

#[test]
fn half_open_connections_do_not_keep_others_out() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let output = place.path().join("out");
    // At most 32 connections of each kind.
    let mut collector = Running::with(Options { open_files: Some(256), ..Options::new(&output) });
    let addresses = collector.addresses;
    let mut known = Sender::connect(&addresses);
    known.open(session("known"));
    let handle = known.add(stream("c_0"));
    let open = |host, number| {
        let from = Ipv4Addr::new(127, 0, 0, host);
        let mut streams = [connect_from(from, addresses.control), connect_from(from, addresses.data)];
        if number % 2 == 0 {
            for stream in &mut streams {
                // It may be closed in favour of a newer one.
                let _ = stream.write_all(&[0; 7]);
            }
        }
        streams
    };
    let mut idle: Vec<_> = (2..14).flat_map(|host| (0..40).flat_map(move |number| open(host, number))).collect();
    ordinary(&mut collector, &output, "beside");
    // All hosts at the same time.
    idle.extend((0..40).flat_map(|number| (2..14).flat_map(move |host| open(host, number))));
    ordinary(&mut collector, &output, "further");
    known.packet(handle, 0);
    drop(idle);
    ordinary(&mut collector, &output, "after");
}

#[test]
fn hostile_viewers_harm_nobody() {
    let (place, mut collector) = place();
    let addresses = collector.addresses;
    let mut sender = Sender::connect(&addresses);
    sender.open(session("seen"));
    let (handle, metadata) = (sender.add(stream("c_0")), sender.add(stream("metadata")));
    sender.done(&Command::StreamsSent);
    sender.packet(handle, 0);
    let ask = |viewer: &mut TcpStream, request: Request, size: usize| {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        viewer.write_all(&bytes).expect("the collector reads");
        let mut reply = vec![0; size];
        viewer.read_exact(&mut reply).expect("a reply");
        reply
    };
    let word = |reply: &[u8], at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().expect("four bytes"));
    for bytes in [&[0xff; 64][..], &[0; 16], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut viewer = connect(addresses.live);
        viewer.write_all(bytes).expect("the collector reads");
        assert!(is_closed(&mut viewer));
    }
    for _ in 0..3 {
        let mut viewer = connect(addresses.live);
        ask(&mut viewer, Request::Connect(Connect::viewer()), 20);
        // Requests before anything is attached.
        let attach = |session| Request::Attach { session, offset: 0, seek: Seek::Beginning };
        assert_eq!(word(&ask(&mut viewer, attach(1), 8), 0), AttachStatus::NoSession.number());
        assert_eq!(word(&ask(&mut viewer, Request::CreateSession, 4), 0), 1);
        assert_eq!(word(&ask(&mut viewer, attach(77), 8), 0), AttachStatus::Unknown.number());
        let error = IndexStatus::Error.number();
        assert_eq!(word(&ask(&mut viewer, Request::NextIndex { stream: handle }, 64), 56), error);
        let reply = ask(&mut viewer, Request::Packet { stream: handle, offset: 0, length: 10 }, 12);
        assert_eq!(word(&reply, 0), PacketStatus::Error.number());
        let none = MetadataStatus::Error.number();
        assert_eq!(word(&ask(&mut viewer, Request::Metadata { stream: metadata }, 12), 8), none);
        let reply = ask(&mut viewer, Request::NewStreams { session: 1 }, 8);
        assert_eq!(word(&reply, 0), NewStreamsStatus::Error.number());
        assert_eq!(word(&ask(&mut viewer, Request::Detach { session: 1 }, 4), 0), 2);
        // Two streams are announced, once.
        let reply = ask(&mut viewer, attach(1), 8 + 2 * 4371);
        assert_eq!((word(&reply, 0), word(&reply, 4)), (AttachStatus::Ok.number(), 2));
        assert_eq!(word(&ask(&mut viewer, attach(1), 8), 4), 0);
        // The packet, then impossible offsets.
        collector.until(|report| report.counts.stored == 1);
        assert_eq!(word(&ask(&mut viewer, Request::NextIndex { stream: handle }, 64), 56), IndexStatus::Ok.number());
        for offset in [4096, 1 << 40, 1 << 50, u64::MAX] {
            let reply = ask(&mut viewer, Request::Packet { stream: handle, offset, length: u32::MAX }, 12);
            assert_eq!(word(&reply, 0), PacketStatus::Error.number(), "{offset}");
        }
        let reply = ask(&mut viewer, Request::Packet { stream: handle, offset: 4000, length: u32::MAX }, 12 + 96);
        assert_eq!((word(&reply, 0), word(&reply, 4)), (PacketStatus::Ok.number(), 96));
        assert_eq!(word(&ask(&mut viewer, Request::NextIndex { stream: metadata }, 64), 56), error);
        // The viewer vanishes in the middle of a request.
        viewer.write_all(&[0; 9]).expect("the collector reads");
    }
    collector.until(|report| report.viewers == 0);
    sender.done(&Command::CloseStream { handle, last: 0 });
    ordinary(&mut collector, &place.path().join("out"), "after");
}
