//! Messages of the collector about senders that it refuses, or accepts with a warning.

use super::hostile_stream::{hello, negotiated, say};
use super::running::Running;
use super::stream_sender::{Asked, EVENT, METADATA, Network, StreamSender, packet};
use std::io::Read;
use tempfile::TempDir;
use tracepoint_collector::Options;
use tracepoint_wire::stream::{ErrorCode, FRAME_HEADER, FrameHeader, Hello, NO_BOUND, ToCollector, ToSender};

fn place() -> TempDir {
    TempDir::new_in("/dev/shm").expect("a directory")
}

/// Sends a greeting and returns the error with which the collector answers.
fn refusal(collector: &Running, message: &ToCollector<'_>) -> (ErrorCode, String) {
    let mut stream = negotiated(&collector.addresses);
    say(&mut stream, message);
    let mut frame = Vec::new();
    stream.read_to_end(&mut frame).expect("the connection is closed");
    let header = FrameHeader::decode(&frame).expect("whole").expect("a frame");
    match ToSender::decode(header.kind, &frame[FRAME_HEADER..]) {
        Ok(ToSender::Error(code, why)) => (code, why.to_owned()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_sides_are_told_of_another_version_and_of_a_name_that_is_too_long() {
    let place = place();
    let collector = Running::below(place.path());
    let ToCollector::Hello(own) = hello(1, "host", "shop", "till") else { unreachable!("it is a HELLO") };
    let told = refusal(&collector, &ToCollector::Hello(Hello { version: 2, ..own }));
    assert_eq!(told, (ErrorCode::Version, "the sender speaks version 2, and this collector 1".to_owned()));
    let (code, long) = refusal(&collector, &hello(1, &"x".repeat(300), "shop", "till"));
    assert_eq!((code, long.as_str()), (ErrorCode::Protocol, "a message is malformed: it is too long"));
    let (counts, messages) = collector.end();
    assert_eq!((counts.failed, counts.sessions), (2, 0));
    for why in ["version 2, and this collector 1", "it is too long"] {
        assert!(messages.iter().any(|text| text.contains("was closed: ") && text.contains(why)), "{messages:#?}");
    }
}

#[test]
fn senders_with_equal_names_are_stored_in_directories_of_their_own() {
    let place = place();
    let collector = Running::below(place.path());
    let open = |key| StreamSender::open(collector.addresses.control, collector.addresses.data, key, None);
    let mut senders = [open(1), open(2)];
    for (sender, packets) in senders.iter_mut().zip([3, 5]) {
        let (handle, next) = sender.announce(0);
        assert_eq!(next, 0, "it does not go on with the other one");
        sender.say_metadata(0, &[METADATA, EVENT].concat());
        (0..packets).for_each(|seq| sender.send(handle, seq, packet(0, seq, 0)));
        sender.sync(5000);
    }
    for (sender, packets) in senders.iter_mut().zip([3, 5]) {
        let closed = sender.close();
        assert_eq!((closed[0].packets, closed[0].packets_lost), (packets, 0));
    }
    let (_, messages) = collector.end();
    for (directory, packets) in [("host/shop/till-7-1", 3), ("host/shop/till-7-1-2", 5)] {
        let file = place.path().join(directory).join("c_0").metadata().expect("a file");
        assert_eq!(file.len(), packets * packet(0, 0, 0).len() as u64);
        let began = format!("live session `shop-till-7-1` of host began in {directory}");
        assert!(messages.contains(&began), "{messages:#?}");
    }
}

#[test]
fn a_clock_that_is_far_off_is_told_once() {
    const HOUR: i64 = 3_600_000_000_000;
    let place = place();
    let collector = Running::below(place.path());
    for (key, offset) in [(1, HOUR), (2, -HOUR), (3, 900_000_000)] {
        let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, key, None);
        sender.announce(0);
        // The clock of this trace begins in 1970.
        sender.say_metadata(0, &[METADATA, EVENT].concat());
        sender.until(|sender| sender.metadata > 0);
        for (number, alignment) in (1..).zip([(0, NO_BOUND), (offset, 1000), (offset, 10), (offset + 2000, 20)]) {
            sender.alignment = alignment;
            sender.sync(2000 + number);
            sender.until(|sender| sender.synced == number);
        }
        sender.close();
    }
    let (_, messages) = collector.end();
    let notes: Vec<_> = messages.iter().filter(|text| text.starts_with("the clock of host is ")).collect();
    assert_eq!(notes.len(), 2, "{messages:#?}");
    for (note, part) in
        notes.iter().zip(["3600s behind that of this collector", "3600s ahead of that of this collector"])
    {
        assert!(note.contains(part), "{note}");
    }
}

/// The first connection is lost before the sender reads the report of the loss: the collector reports it again before it acknowledges the packet.
#[test]
fn losses_are_told_again_on_the_next_connection() {
    let place = place();
    let mut collector = Running::with(Options::new(place.path()));
    let open = |network| StreamSender::open(collector.addresses.control, collector.addresses.data, 1, network);
    let mut first = open(Some(Network::new(1, 0)));
    first.asked = Asked::SaysGone;
    let (handle, _) = first.announce(0);
    first.say_metadata(0, &[METADATA, EVENT].concat());
    first.send(handle, 0, packet(0, 0, 0));
    // This packet is never sent, and the sender reports it as gone. The next packet names it as its predecessor.
    first.store.insert((handle, 1), (0, packet(0, 1, 0)));
    first.transmit(handle, 2, 1, &packet(0, 2, 0), None);
    first.until(|sender| sender.next.get(&handle) == Some(&3));
    assert_eq!(first.lost, [(handle, 1)]);
    let mut second = open(None);
    second.store = std::mem::take(&mut first.store);
    drop(first);
    assert_eq!(second.announce(0), (handle, 3));
    second.until(|sender| sender.next.get(&handle) == Some(&3));
    assert_eq!(second.lost, [(handle, 1)], "before it is acknowledged");
    second.say(&ToCollector::GiveUp);
    collector.until(|report| report.sessions == 0);
}
