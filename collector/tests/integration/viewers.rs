//! Viewers that are slow or vanish: the collector's memory stays bounded, and senders and other viewers continue.

use super::overload::{ask, number, status, word};
use super::restart::start_with;
use super::running::{PATIENCE, Running};
use super::sender::connect;
use super::stream_sender::{EVENT, METADATA, StreamSender, packet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_reader::live::{LiveOptions, LiveUrl, LiveView};
use tracepoint_reader::{Item, PollResult};
use tracepoint_wire::live::{Connect, IndexStatus, Request, Seek, Status};

const VIEWERS: usize = 16;
/// Size of the packets: half a MiB.
const PADDING: usize = 512 << 10;
const PACKETS: u64 = 20;
/// Maximum growth of the collector's memory over its idle state: its packet limit plus a tenth.
const MAX: u64 = (64 << 20) / 10 * 11;

/// Attaches a viewer to the first session. Returns it with the announced data streams.
fn attach(live: SocketAddr) -> (TcpStream, Vec<u64>) {
    let mut viewer = connect(live);
    ask(&mut viewer, Request::Connect(Connect::viewer()), 20);
    ask(&mut viewer, Request::CreateSession, 4);
    let reply = ask(&mut viewer, Request::Attach { session: 1, offset: 0, seek: Seek::Beginning }, 8);
    let mut streams = Vec::new();
    for _ in 0..word(&reply, 4) {
        let mut record = vec![0; 4371];
        viewer.read_exact(&mut record).expect("a stream");
        if word(&record, 16) == 0 {
            streams.push(number(&record, 0));
        }
    }
    (viewer, streams)
}

/// Reads packets of a stream until this many were seen.
fn see(viewer: &mut TcpStream, stream: u64, packets: u64) {
    let mut seen = 0;
    while seen < packets {
        let index = ask(viewer, Request::NextIndex { stream }, 64);
        if word(&index, 56) == IndexStatus::Ok.number() {
            let length = (number(&index, 8) / 8) as u32;
            let reply = ask(viewer, Request::Packet { stream, offset: number(&index, 0), length }, 12);
            let mut bytes = vec![0; word(&reply, 4) as usize];
            viewer.read_exact(&mut bytes).expect("a packet");
            assert!(bytes == packet(0, seen, PADDING), "packet {seen}");
            seen += 1;
        }
    }
}

fn record(control: SocketAddr, data: SocketAddr) -> (StreamSender, u64) {
    let mut sender = StreamSender::open(control, data, 1, None);
    let (handle, _) = sender.announce(0);
    sender.say_metadata(0, &[METADATA, EVENT].concat());
    send(&mut sender, handle, 0..PACKETS);
    (sender, handle)
}

fn send(sender: &mut StreamSender, handle: u64, numbers: std::ops::Range<u64>) {
    let end = numbers.end;
    for seq in numbers {
        sender.send_once(handle, seq, &packet(0, seq, PADDING));
        sender.until(|sender| sender.next.get(&handle) == Some(&(seq + 1)));
    }
    sender.sync(2000 + end * 100);
}

#[test]
fn slow_viewers_take_bounded_memory_and_hold_up_nobody() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let (mut child, [control, data, live]) = start_with(place.path(), None);
    let idle = status(child.id(), "VmRSS:");
    let (mut sender, handle) = record(control, data);
    // Each requests 500 MiB, and reads none of it.
    let slow = [(); VIEWERS].map(|()| {
        let (mut viewer, streams) = attach(live);
        let mut requests = Vec::new();
        for _ in 0..1000 {
            Request::Packet { stream: streams[0], offset: 0, length: PADDING as u32 }.encode(&mut requests);
        }
        viewer.write_all(&requests).expect("the collector reads");
        viewer
    });
    let (mut viewer, streams) = attach(live);
    send(&mut sender, handle, PACKETS..PACKETS * 2);
    see(&mut viewer, streams[0], PACKETS * 2);
    let most = status(child.id(), "VmHWM:") - idle;
    println!("{} MiB more than when it was idle", most >> 20);
    assert!(most <= MAX, "{most} bytes");
    let closed = sender.close();
    assert_eq!((closed[0].packets, closed[0].packets_lost), (PACKETS * 2, 0));
    drop(slow);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// Returns the time of a view's next event.
fn next_time(view: &mut LiveView) -> i64 {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match view.poll().expect("a view") {
            PollResult::Item(Item::Event(event)) => return event.time_ns,
            PollResult::Wait => sleep(Duration::from_millis(5)),
            other => panic!("{other:?}"),
        }
    }
    panic!("no event comes");
}

/// Returns a sender that has announced a stream, the stream's handle, and the session's URL for viewers.
fn live(collector: &Running) -> (StreamSender, u64, LiveUrl) {
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    let (handle, _) = sender.announce(0);
    sender.say_metadata(0, &[METADATA, EVENT].concat());
    let url = format!("net://{}/host/host/shop-till-7-1", collector.addresses.live).parse().expect("a URL");
    (sender, handle, url)
}

#[test]
fn a_view_has_the_time_of_the_collector_from_its_first_event_on() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = Running::below(place.path());
    let (mut sender, handle, url) = live(&collector);
    let mut options = LiveOptions::default();
    options.from_beginning = true;
    // The view attaches before anything is known about the clock.
    let open = || LiveView::open(&url, &options).expect("a view");
    let mut views = vec![open()];
    assert!(matches!(views[0].poll(), Ok(PollResult::Wait)));
    let known =
        |view: &LiveView| view.alignments().map(|(_, it)| (it.offset, it.bound, it.correction)).collect::<Vec<_>>();
    let estimates = [(7_000_000_000, 50), (-9_000, 45)];
    for (seq, alignment) in (0..).zip(estimates) {
        sender.send(handle, seq, packet(0, seq, 0));
        sender.alignment = alignment;
        sender.sync(1000 + (seq + 1) * 100);
        sender.until(|sender| sender.synced == seq + 1);
        for view in &mut views {
            assert_eq!(next_time(view), 7_000_001_001 + seq.cast_signed() * 100, "a time never goes back");
            assert_eq!(known(view), [(7_000_000_000, 50, 7_000_000_000)]);
        }
    }
    // A later view has the later measurement.
    views.push(open());
    assert_eq!(next_time(&mut views[1]), 1001 - 9000);
    assert_eq!(known(&views[1]), [(-9_000, 45, -9_000)]);
    sender.close();
}

#[test]
fn a_clock_of_which_nothing_is_known_is_that_of_the_metadata() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = Running::below(place.path());
    let (mut sender, handle, url) = live(&collector);
    let mut view = LiveView::open(&url, &LiveOptions::default()).expect("a view");
    sender.send(handle, 0, packet(0, 0, 0));
    sender.sync(1100);
    assert_eq!((next_time(&mut view), view.alignments().count()), (1001, 0));
    sender.close();
}

#[test]
fn viewers_that_vanish_are_forgotten() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let mut collector = Running::below(place.path());
    let addresses = collector.addresses;
    let (mut sender, handle) = record(addresses.control, addresses.data);
    let (mut viewer, streams) = attach(addresses.live);
    let mut vanishing: Vec<_> = (0..VIEWERS).map(|_| attach(addresses.live).0).collect();
    collector.until(|report| report.viewers == VIEWERS + 1);
    // In the middle of a request, with answers underway, and with nothing underway.
    let mut request = Vec::new();
    Request::Packet { stream: streams[0], offset: 0, length: PADDING as u32 }.encode(&mut request);
    let many = request.repeat(50);
    for (which, viewer) in vanishing.iter_mut().enumerate() {
        let bytes = [&request[..7], &many, &[]][which % 3];
        viewer.write_all(bytes).expect("the collector reads");
    }
    drop(vanishing);
    collector.until(|report| report.viewers == 1);
    send(&mut sender, handle, PACKETS..PACKETS * 2);
    see(&mut viewer, streams[0], PACKETS * 2);
    let closed = sender.close();
    assert_eq!((closed[0].packets, closed[0].packets_lost), (PACKETS * 2, 0));
    drop(viewer);
    let (counts, messages) = collector.end();
    assert_eq!(counts.stored, PACKETS * 2, "{messages:#?}");
}
