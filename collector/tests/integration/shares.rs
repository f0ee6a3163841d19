//! An address that takes as much as it can keeps no other address out, and releases everything when its senders are gone.

use super::running::Running;
use super::sender::{ELSEWHERE, HERE, Sender, packet, session, stream};
use super::stream_sender::{EVENT, METADATA, StreamSender, packet as wire_packet};
use std::net::Ipv4Addr;
use tempfile::TempDir;
use tracepoint_collector::{Addresses, Options};
use tracepoint_wire::relay::{Command, Reply, ReturnCode};
use tracepoint_wire::stream::ErrorCode;

/// Limit on open stream files.
const FILES: usize = 256;

fn collector(place: &TempDir) -> Running {
    Running::with(Options { files: Some(FILES), ..Options::new(place.path()) })
}

fn open(from: Ipv4Addr, addresses: &Addresses, key: u8) -> StreamSender {
    StreamSender::open_from(from, addresses.control, addresses.data, key, None)
}

/// Records a packet in each of three streams; all are stored.
fn record(from: Ipv4Addr, addresses: &Addresses, key: u8) {
    let mut sender = open(from, addresses, key);
    sender.say_metadata(0, &[METADATA, EVENT].concat());
    for instance in 0..3 {
        let (handle, _) = sender.announce(instance);
        sender.send(handle, 0, wire_packet(instance, 0, 0));
    }
    sender.sync(2000);
    let sums = sender.close().into_iter().map(|stream| (stream.packets, stream.events, stream.packets_lost));
    assert_eq!(sums.collect::<Vec<_>>(), [(1, 1, 0); 3], "{from}");
}

#[test]
fn a_sender_that_announces_without_end_keeps_out_no_other() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let mut collector = collector(&place);
    let addresses = collector.addresses;
    let mut flooders = Vec::new();
    let mut streams = Vec::new();
    for key in 1..=3 {
        let mut flooder = open(HERE, &addresses, key);
        let (count, (code, why)) = flooder.flood(0);
        assert_eq!(code, ErrorCode::Busy);
        // The sender's existing streams continue.
        let (handle, _) = flooder.announce(0);
        flooder.say_metadata(0, &[METADATA, EVENT].concat());
        flooder.send(handle, 0, wire_packet(0, 0, 0));
        flooder.until(|flooder| flooder.next.get(&handle) == Some(&1));
        assert!(
            why.contains("its address 127.0.0.1, has its share of the 256 files") && why.contains("--files"),
            "{why}"
        );
        streams.push(count);
        flooders.push(flooder);
        record(ELSEWHERE, &addresses, 100 + key);
    }
    // A quarter, including metadata; and half for all together.
    assert_eq!(streams[0], FILES as u64 / 4 / 2 - 1, "{streams:?}");
    assert!(
        streams.is_sorted_by(|one, next| one > next) && streams.iter().sum::<u64>() < FILES as u64 / 4,
        "{streams:?}"
    );
    drop(flooders);
    // The streams' sender has closed none of them.
    for key in 10..20 {
        record(HERE, &addresses, key);
    }
    let report = collector.until(|report| report.counts.refused_streams >= 3);
    assert!(report.files.0 <= FILES / 2 && report.files.1 == FILES, "{:?}", report.files);
    let (counts, messages) = collector.end();
    assert_eq!((counts.missing, counts.unwritten), (0, 0));
    assert!(
        messages.iter().any(|text| text.contains("a stream was refused: it, or its address 127.0.0.1")),
        "{messages:#?}"
    );
}

#[test]
fn a_stock_sender_that_adds_streams_without_end_keeps_out_no_other() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = collector(&place);
    let addresses = collector.addresses;
    let mut flooder = Sender::connect(&addresses);
    flooder.open(session("flood"));
    let mut streams = 0;
    let refused = loop {
        match flooder.command(&Command::AddStream(stream(&format!("c_{streams}")))).expect("a reply") {
            Reply::Stream { handle, code: ReturnCode::Ok } => {
                // The index waits for its packet.
                flooder.done(&Command::SendIndex(packet(handle, handle, 0, 4096).1));
                streams += 1;
            }
            refused => break refused,
        }
    };
    assert_eq!(refused, Reply::Stream { handle: u64::MAX, code: ReturnCode::Unknown });
    assert_eq!(streams, FILES / 4 / 2);
    for _ in 0..1000 {
        flooder.command(&Command::AddStream(stream("more"))).expect("a reply");
    }
    let record = |from| {
        let mut sender = Sender::connect_from(from, &addresses);
        sender.open(session("shop"));
        for channel in ["metadata", "c_0", "c_1"] {
            let handle = sender.add(stream(channel));
            if channel != "metadata" {
                sender.packet(handle, 0);
                sender.done(&Command::CloseStream { handle, last: 0 });
            }
        }
    };
    record(ELSEWHERE);
    // Takes the rest of this address's share.
    let mut others: Vec<_> = (0..40).map(|_| Sender::connect(&addresses)).collect();
    for other in &mut others {
        other.open(session("other"));
        while let Ok(Reply::Stream { code: ReturnCode::Ok, .. }) =
            other.command(&Command::AddStream(stream(&format!("c_{streams}"))))
        {
            streams += 1;
        }
    }
    record(ELSEWHERE);
    drop((flooder, others));
    for _ in 0..10 {
        record(HERE);
    }
    let (counts, messages) = collector.end();
    assert_eq!((counts.stored, counts.unwritten), (2 * 12, 0), "{messages:#?}");
    assert!(counts.refused_streams > 1000);
    let told = messages.iter().filter(|text| text.contains("refused")).count();
    assert!((1..20).contains(&told), "{told} messages: {messages:#?}");
}

/// Viewers may read old chunks as long as enough files are free.
#[test]
fn chunks_of_one_address_take_no_files_from_others() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let mut collector =
        Running::with(Options { files: Some(FILES), rotate_size: Some(1), ..Options::new(place.path()) });
    let addresses = collector.addresses;
    let mut sender = open(HERE, &addresses, 1);
    sender.say_metadata(0, &[METADATA, EVENT].concat());
    let handles: Vec<_> = (0..24).map(|instance| sender.announce(instance).0).collect();
    for seq in 0..6 {
        for (instance, handle) in handles.iter().enumerate() {
            sender.send(*handle, seq, wire_packet(instance as u64, seq, 0));
        }
        sender.sync(2000 + seq * 100);
        sender.until(|sender| handles.iter().all(|handle| sender.next.get(handle) == Some(&(seq + 1))));
    }
    let report = collector.until(|report| report.counts.stored == 6 * 24);
    assert!(report.files.0 <= FILES / 2, "{:?}", report.files);
    record(ELSEWHERE, &addresses, 2);
    sender.close();
    collector.end();
}
