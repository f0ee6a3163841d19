//! Senders of the stream protocol: over TCP and over bad networks, resumed, hostile.

use super::restart::start;
use super::running::{PATIENCE, Running};
use super::sender::connect;
use super::stream_sender::{Asked, EVENT, METADATA, Network, StreamSender, packet};
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_collector::Options;
use tracepoint_wire::stream::{DatagramHeader, ToCollector};

fn place() -> TempDir {
    TempDir::new_in("/dev/shm").expect("a directory")
}

fn directory(place: &TempDir) -> std::path::PathBuf {
    place.path().join("host/shop/till-7-1")
}

/// Returns the numbers of the packets in a file.
fn stored(file: &Path, instance: u64, padding: usize) -> Vec<u64> {
    let bytes = std::fs::read(file).expect("a file");
    let size = packet(instance, 0, padding).len();
    assert_eq!(bytes.len() % size, 0);
    let numbers = bytes.chunks(size).map(|stored| {
        let seq = u64::from_le_bytes(stored[64..72].try_into().expect("eight bytes"));
        assert!(stored == packet(instance, seq, padding), "packet {seq} is not as it was sent");
        seq
    });
    numbers.collect()
}

#[test]
fn packets_over_tcp_are_stored_and_acknowledged() {
    let place = place();
    let collector = Running::below(place.path());
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    assert_eq!(sender.welcome.map(|(resumed, metadata, _)| (resumed, metadata)), Some((false, 0)));
    // babeltrace2 rejects a directory that has an empty metadata file anywhere below it.
    let metadata = directory(&place).join("metadata");
    assert!(directory(&place).exists() && !metadata.exists());
    let handles = [sender.announce(0).0, sender.announce(1).0];
    sender.say_metadata(0, METADATA);
    sender.say_metadata(METADATA.len() as u64 - 7, &[&METADATA[METADATA.len() - 7..], EVENT].concat());
    for seq in 0..200 {
        for (instance, handle) in handles.into_iter().enumerate() {
            // The second stream skips numbers that are never sent.
            let seq = seq * (1 + instance as u64);
            sender.send(handle, seq, packet(instance as u64, seq, 160));
        }
        if seq % 50 == 49 {
            sender.sync(1000 + seq * 200);
        }
    }
    let metadata = (METADATA.len() + EVENT.len()) as u64;
    sender.until(|sender| {
        sender.next.values().copied().eq([200, 399]) && sender.metadata == metadata && sender.synced == 4
    });
    assert_eq!(sender.nacks, 0);
    let mut closed = sender.close();
    assert!(closed.iter().all(|closed| (closed.packets, closed.packets_lost) == (200, 0)), "{closed:?}");
    closed.sort_by_key(|closed| closed.handle);
    // By their headers, each packet has one event; each packet before a gap has 11, counted in the file.
    assert_eq!((closed[0].events, closed[1].events), (200, 199 * 11 + 1));
    let (counts, messages) = collector.end();
    assert_eq!((counts.stored, counts.late + counts.missing + counts.damaged), (400, 0), "{messages:?}");
    let directory = directory(&place);
    assert!(stored(&directory.join("c_0"), 0, 160).into_iter().eq(0..200));
    assert!(stored(&directory.join("c_1"), 1, 160).into_iter().eq((0..200).map(|seq| seq * 2)));
    assert_eq!(std::fs::read_to_string(directory.join(".account/account.json")).expect("an account"), "{}");
    let output = Command::new("babeltrace2").arg(&directory).output().expect("babeltrace2 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 400 * 11);
}

/// Over TCP, a synchronisation has its own connection and can overtake packets. The sender keeps no packets here, so a requested one would be
/// reported as gone.
#[test]
fn packets_that_a_synchronisation_has_overtaken_are_not_lost() {
    let place = place();
    let collector = Running::below(place.path());
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    let handle = sender.announce(0).0;
    sender.say_metadata(0, &(METADATA.to_owned() + EVENT));
    sender.send_once(handle, 0, &packet(0, 0, 0));
    // The second packet is delayed, as if in a buffer.
    sender.count_sent(handle, 1);
    let begin = Instant::now();
    sender.sync(1200);
    while begin.elapsed() < Duration::from_secs(1) {
        assert!(sender.listen(), "the collector has closed the connection");
    }
    sender.transmit(handle, 1, 0, &packet(0, 1, 0), None);
    let closed = sender.close();
    assert_eq!((closed[0].packets, closed[0].packets_lost, sender.nacks), (2, 0, 0));
}

/// A sender whose time is up gets a report of the stored packets, and its account is stored: after a gap, and when the quota is used up.
#[test]
fn a_sender_that_gives_up_is_told_what_is_stored() {
    let size = packet(0, 0, 160).len() as u64;
    for (sent, quota, packets, acknowledged) in
        [(vec![0, 2, 3], 1 << 20, 3, 1), (vec![0, 1, 2, 3, 4], 3 * size + size / 2, 3, 3)]
    {
        let place = place();
        let gap_time = Duration::from_secs(60);
        let collector = Running::with(Options { quota: Some(quota), gap_time, ..Options::new(place.path()) });
        let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
        sender.asked = Asked::Ignores;
        let handle = sender.announce(0).0;
        for seq in 0..=*sent.last().expect("some") {
            if sent.contains(&seq) {
                sender.send(handle, seq, packet(0, seq, 160));
            } else {
                sender.count_sent(handle, seq);
            }
        }
        sender.until(|sender| sender.next.get(&handle) == Some(&acknowledged));
        let closed = sender.give_up();
        let lost = sent.last().expect("some") + 1 - packets;
        assert_eq!((closed[0].packets, closed[0].packets_lost), (packets, lost), "{sent:?}");
        let (counts, messages) = collector.end();
        assert_eq!((counts.stored, counts.missing), (packets, lost), "{messages:?}");
        assert!(directory(&place).join(".account/account.json").exists());
    }
}

#[test]
fn a_sender_that_is_gone_before_it_streams_leaves_no_directory() {
    let place = place();
    let collector = Running::below(place.path());
    let sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    assert!(directory(&place).exists());
    drop(sender);
    let (_, messages) = collector.end();
    assert!(!place.path().join("host").exists(), "{messages:?}");
    assert!(place.path().exists());
}

#[test]
fn the_alignment_of_clocks_is_stored_when_it_changes_by_more_than_its_bound() {
    let place = place();
    let collector = Running::below(place.path());
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    let (handle, _) = sender.announce(0);
    sender.say_metadata(0, &[METADATA, EVENT].concat());
    sender.send(handle, 0, packet(0, 0, 160));
    // Unknown; known; within the bound; more precise; a clock that was set.
    let estimates = [(0, u64::MAX), (5_000, 100), (5_050, 120), (5_010, 40), (-9_000, 45)];
    for (index, estimate) in estimates.into_iter().enumerate() {
        sender.alignment = estimate;
        sender.sync(2000 + index as u64);
        sender.until(|sender| sender.synced == index as u64 + 1);
    }
    sender.close();
    collector.end();
    let stored = std::fs::read_to_string(directory(&place).join(".account/clock-alignment")).expect("a file");
    assert_eq!(stored, "2001 5000 100\n2003 5010 40\n2004 -9000 45\n");
}

#[test]
fn bad_networks_lose_what_cannot_be_sent_again_and_say_so() {
    for seed in 0..8 {
        for (loss, resends) in [(0, true), (5, true), (30, true), (5, false)] {
            let place = place();
            let options = Options { gap_time: Duration::from_secs(1), ..Options::new(place.path()) };
            let collector = Running::with(options);
            let network = Network::new(seed * 4 + loss, loss);
            let mut sender =
                StreamSender::open(collector.addresses.control, collector.addresses.data, 1, Some(network));
            sender.asked = if resends { Asked::SendsAgain } else { Asked::SaysGone };
            let (handle, _) = sender.announce(0);
            sender.say_metadata(0, METADATA);
            // Several datagrams each.
            for seq in 0..100 {
                sender.send(handle, seq, packet(0, seq, 4000));
                if seq % 10 == 9 {
                    sender.sync(1000 + seq * 100);
                    assert!(sender.listen());
                }
            }
            let closed = sender.close();
            let (counts, messages) = collector.end();
            let told = format!("seed {seed}, loss {loss}, resends {resends}: {closed:?} {counts:?} {messages:?}");
            let stored = stored(&directory(&place).join("c_0"), 0, 4000);
            assert!(stored.is_sorted_by(|a, b| a < b), "{told}");
            assert_eq!(
                (closed[0].packets, closed[0].packets + closed[0].packets_lost),
                (stored.len() as u64, 100),
                "{told}"
            );
            let missing = (0..100).filter(|seq| stored.binary_search(seq).is_err());
            assert!(sender.lost.iter().copied().eq(missing.map(|seq| (handle, seq))), "{told} {:?}", sender.lost);
            if loss <= 5 && resends {
                assert_eq!(stored.len(), 100, "{told}");
            }
        }
    }
}

#[test]
fn a_killed_collector_loses_and_repeats_nothing() {
    let place = place();
    let mut acknowledged = 0;
    let mut store = 0;
    for round in 0..4_u64 {
        let (mut child, [control, data]) = start(place.path());
        let mut sender = StreamSender::open(control, data, 9, None);
        let (resumed, metadata, _) = sender.welcome.expect("a welcome");
        assert_eq!((resumed, metadata), (round > 0, if round > 0 { METADATA.len() as u64 } else { 0 }));
        sender.say_metadata(0, METADATA);
        let (handle, next) = sender.announce(0);
        assert!(next >= acknowledged, "{next} of {acknowledged} acknowledged packets");
        // Unacknowledged packets are sent again, unchanged: the `prev_seq` of the first one names the packet before it.
        for seq in next..store {
            let prev = seq.checked_sub(1).unwrap_or(u64::MAX);
            sender.transmit(handle, seq, prev, &packet(0, seq, 1600), None);
        }
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(150 + round * 70));
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        });
        let deadline = Instant::now() + PATIENCE;
        loop {
            let prev = store.checked_sub(1_u64).unwrap_or(u64::MAX);
            sender.transmit(handle, store, prev, &packet(0, store, 1600), None);
            store += 1;
            if store % 16 == 0 && !sender.listen() {
                break;
            }
            assert!(Instant::now() < deadline, "it was not killed");
        }
        acknowledged = sender.next.get(&handle).copied().unwrap_or(acknowledged).max(acknowledged);
        killer.join().expect("no panic");
        let stored = stored_after_repair(&place);
        assert!(stored.iter().copied().eq(0..stored.len() as u64), "missing or twice");
        assert!(stored.len() as u64 >= acknowledged && acknowledged > 0, "{} of {acknowledged}", stored.len());
    }
}

/// Returns the packets that the next collector would find.
fn stored_after_repair(place: &TempDir) -> Vec<u64> {
    Running::below(place.path()).end();
    stored(&directory(place).join("c_0"), 0, 1600)
}

#[test]
fn what_is_not_of_a_sender_is_ignored() {
    let place = place();
    let mut collector = Running::below(place.path());
    let network = Network::new(1, 0);
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, Some(network));
    let (handle, _) = sender.announce(0);
    sender.say_metadata(0, METADATA);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = collector.addresses.data;
    stranger.send_to(b"hello", to).expect("a datagram");
    stranger.send_to(&DatagramHeader::probe([7; 16]).encode(), to).expect("a datagram");
    let header = DatagramHeader { handle, total: 100, unit: 44, ..DatagramHeader::probe([7; 16]) };
    let header = DatagramHeader { probe: false, ..header };
    stranger.send_to(&[&header.encode()[..], &[0; 44]].concat(), to).expect("a datagram");
    collector.until(|report| report.counts.ignored == 3);
    // A data connection without a valid token, and one that violates the protocol.
    let mut data = connect(to);
    data.write_all(b"TPSTREAMxxxxxxxxxxxxxxxx\0\0\0\0\0\0\0\0").expect("the collector reads");
    assert!(super::sender::is_closed(&mut data));
    sender.send(handle, 0, packet(0, 0, 16));
    sender.sync(5000);
    sender.until(|sender| sender.next.get(&handle) == Some(&1));
    // A second connection with the session's key replaces the first.
    let mut second = StreamSender::open(collector.addresses.control, to, 1, None);
    assert_eq!(second.welcome.map(|(resumed, ..)| resumed), Some(true));
    assert_eq!(second.announce(0), (handle, 1));
    second.send(handle, 1, packet(0, 1, 16));
    second.until(|sender| sender.next.get(&handle) == Some(&2));
    second.say(&ToCollector::GiveUp);
    collector.until(|report| report.sessions == 0);
    assert_eq!(stored(&directory(&place).join("c_0"), 0, 16), [0, 1]);
}

#[test]
fn viewers_see_what_a_synchronisation_has_released() {
    let place = place();
    let mut collector = Running::below(place.path());
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    let handles = [sender.announce(0).0, sender.announce(1).0];
    let url = format!("net://{}/host/host/shop-till-7-1", collector.addresses.live);
    let start = || {
        let mut viewer = Command::new("babeltrace2");
        viewer.args(["-i", "lttng-live", &url]).stdout(Stdio::piped()).stderr(Stdio::piped());
        viewer.spawn().expect("babeltrace2 runs")
    };
    let mut viewers = [start(), start()];
    collector.until(|report| report.viewers == 2);
    let mut lines: Vec<_> =
        viewers.iter_mut().map(|it| BufReader::new(it.stdout.take().expect("a pipe")).lines()).collect();
    // The packets arrive before the metadata that they need, and must not be visible before it.
    for seq in 0..5 {
        sender.send(handles[0], seq, packet(0, seq, 0));
    }
    sender.until(|sender| sender.next.get(&handles[0]) == Some(&5));
    sender.say_metadata(0, METADATA);
    sender.say_metadata(METADATA.len() as u64, EVENT);
    sender.sync(2000);
    for lines in &mut lines {
        for seq in 0..5 {
            let line = lines.next().expect("an event").expect("text");
            assert!(line.ends_with(&format!("{{ n = {seq} }}")), "{line}");
        }
    }
    // The idle second stream does not delay the view; then it has events as well.
    sender.send(handles[1], 15, packet(1, 15, 0));
    sender.send(handles[0], 16, packet(0, 16, 0));
    sender.sync(5000);
    for lines in &mut lines {
        for seq in [15, 16] {
            let line = lines.next().expect("an event").expect("text");
            assert!(line.ends_with(&format!("{{ n = {seq} }}")), "{line}");
        }
    }
    sender.close();
    for (viewer, mut lines) in viewers.into_iter().zip(lines) {
        assert!(lines.next().is_none());
        let output = viewer.wait_with_output().expect("it ends");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let is_expected = |line: &str| line.contains("discarded 10 packets") || line.contains("discarded 11 packets");
        assert!(errors.lines().filter(|line| line.contains("WARNING")).all(is_expected), "{errors}");
    }
}
