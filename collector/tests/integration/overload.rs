//! Senders that are faster than the disk: the collector's memory stays bounded, everything is counted, and viewers follow closely.
//!
//! The collector runs in its own process. Each sender has a small ring in place of a traced program, and drops packets that do not fit. The viewer's
//! delay is printed; no time is asserted.

use super::restart::start_with;
use super::sender::connect;
use super::stream_sender::{METADATA, StreamSender};
use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_reader::internal::sealed;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::live::{Connect, IndexStatus, Request, Seek, Status};

const SENDERS: u8 = 20;
/// A packet of 1000 events of 16 bytes, 100 times a second.
const PACKET: usize = 96 + 16_000;
const PERIOD: Duration = Duration::from_millis(10);
/// Packets in a sender's ring.
const RING: usize = 128;
/// Speed of the disk in bytes per second: a third of the recorded amount.
const DISK: u64 = 10_000_000;
/// The collector's memory limit.
const MEMORY: u64 = 64 << 20;
/// Tolerance for times of idle streams, which differ slightly because stock viewers warn of equal ones.
const NEAR: u64 = 1000;
/// Duration of the recording.
const TIME: Duration = Duration::from_secs(8);

fn packet(seq: u64) -> Vec<u8> {
    let mut header = PacketHeader::parse(&[]);
    header.magic = 0xC1FC_1FC1;
    (header.stream.class, header.sequence, header.events_before) = (3, seq, seq * 1000);
    (header.begin, header.end) = (time_of(seq), time_of(seq) + 5);
    header.content_bits = PACKET as u64 * 8;
    header.packet_bits = header.content_bits;
    let mut bytes = header.bytes().to_vec();
    bytes.resize(PACKET, 0);
    sealed(bytes)
}

/// Returns the time at which a packet begins; a synchronisation before it promises this time.
const fn time_of(seq: u64) -> u64 {
    1000 + seq * 10_000_000
}

/// The synchronisations of each session that have not reached the viewer: the promised time, and when it was sent.
type Underway = Arc<Mutex<HashMap<u64, VecDeque<(u64, Instant)>>>>;

/// Counts of a sender's packets.
#[derive(Debug)]
struct Sums {
    recorded: u64,
    dropped: u64,
    sent: u64,
    delivered: u64,
    lost: u64,
}

/// Records and streams for a while.
fn stream(mut sender: StreamSender, session: u64, underway: &Underway) -> Sums {
    rustix::process::nice(19).expect("a lower priority");
    let handle = sender.announce(0).0;
    sender.say_metadata(0, METADATA);
    let (begin, mut ring, mut synced) = (Instant::now(), VecDeque::new(), Instant::now());
    let (mut recorded, mut dropped, mut sent) = (0, 0, VecDeque::new());
    let window = sender.window / PACKET as u64;
    let mut count = 0;
    while begin.elapsed() < TIME {
        while PERIOD * (recorded as u32) < begin.elapsed() {
            if ring.len() < RING {
                ring.push_back(recorded);
            } else {
                dropped += 1;
            }
            recorded += 1;
        }
        // Only the numbers of unacknowledged packets remain.
        let stored = sender.next.get(&handle).copied().unwrap_or_default();
        sent.retain(|seq| *seq >= stored);
        while sender.hold.is_none() && (sent.len() as u64) < window {
            let Some(seq) = ring.pop_front() else { break };
            sender.send_once(handle, seq, &packet(seq));
            sent.push_back(seq);
            count += 1;
        }
        assert!(sender.listen(), "the collector has closed the connection");
        if synced.elapsed() >= Duration::from_millis(200) {
            // No event before the oldest packet in the ring follows.
            let time = time_of(ring.front().copied().unwrap_or(recorded));
            sender.sync(time);
            underway.lock().expect("no panic").entry(session).or_default().push_back((time, Instant::now()));
            synced = Instant::now();
        }
    }
    dropped += ring.len() as u64;
    let closed = sender.close();
    let lost = closed[0].packets_lost;
    Sums { recorded, dropped, sent: count, delivered: closed[0].packets, lost }
}

pub(crate) fn ask(viewer: &mut TcpStream, request: Request, size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    viewer.write_all(&bytes).expect("the collector reads");
    let mut reply = vec![0; size];
    viewer.read_exact(&mut reply).expect("a reply");
    reply
}

pub(crate) fn number(reply: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(reply[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn word(reply: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(reply[at..at + 4].try_into().expect("four bytes"))
}

/// Views all sessions and discards their events. Returns the delay of each synchronisation, and the number of packets seen.
fn view(live: SocketAddr, underway: &Underway) -> (Vec<Duration>, u64) {
    let mut viewer = connect(live);
    ask(&mut viewer, Request::Connect(Connect::viewer()), 20);
    ask(&mut viewer, Request::CreateSession, 4);
    let mut streams = Vec::new();
    for session in 1..=u64::from(SENDERS) {
        let mut reply = ask(&mut viewer, Request::Attach { session, offset: 0, seek: Seek::Beginning }, 8);
        while word(&reply, 4) == 0 || streams.len() < session as usize {
            let count = word(&reply, 4);
            for _ in 0..count {
                let mut record = vec![0; 4371];
                viewer.read_exact(&mut record).expect("a stream");
                if word(&record, 16) == 0 {
                    streams.push((session, number(&record, 0), 0));
                }
            }
            if streams.len() < session as usize {
                thread::sleep(Duration::from_millis(10));
                reply = ask(&mut viewer, Request::NewStreams { session }, 8);
            }
        }
    }
    let (mut lags, mut seen) = (Vec::new(), 0);
    while !streams.is_empty() {
        let mut is_idle = true;
        streams.retain_mut(|(session, stream, time)| {
            let index = ask(&mut viewer, Request::NextIndex { stream: *stream }, 64);
            let status = word(&index, 56);
            let is = |of: IndexStatus| status == of.number();
            if is(IndexStatus::Ok) {
                let (offset, length) = (number(&index, 0), PACKET as u32);
                let reply = ask(&mut viewer, Request::Packet { stream: *stream, offset, length }, 12);
                let mut bytes = vec![0; word(&reply, 4) as usize];
                viewer.read_exact(&mut bytes).expect("a packet");
                (*time, seen, is_idle) = (number(&index, 24), seen + 1, false);
            } else if is(IndexStatus::Inactive) {
                *time = number(&index, 32).max(*time);
            }
            let mut underway = underway.lock().expect("no panic");
            let own = underway.entry(*session).or_default();
            while let Some((_, sent)) = own.front().copied().filter(|(promised, _)| *promised <= *time + NEAR) {
                lags.push(sent.elapsed());
                own.pop_front();
            }
            !is(IndexStatus::Hup)
        });
        if is_idle {
            thread::sleep(Duration::from_millis(5));
        }
    }
    (lags, seen)
}

/// Reads a line of `/proc/PID/status`, in bytes.
pub(crate) fn status(pid: u32, line: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = text.lines().find_map(|it| it.strip_prefix(line)).expect("a line");
    line.trim_matches(|it: char| !it.is_ascii_digit()).parse::<u64>().expect("a number") << 10
}

#[test]
fn a_slow_disk_bounds_memory_and_delay_and_loses_nothing_uncounted() {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let (mut child, addresses) = start_with(place.path(), Some(DISK));
    let [control, data, live] = addresses;
    let idle = status(child.id(), "VmRSS:");
    let underway = Underway::default();
    let senders: Vec<_> = (0..SENDERS).map(|key| StreamSender::open(control, data, key, None)).collect();
    let threads: Vec<_> = (1..)
        .zip(senders)
        .map(|(session, sender)| {
            let underway = Arc::clone(&underway);
            thread::spawn(move || stream(sender, session, &underway))
        })
        .collect();
    let own = Arc::clone(&underway);
    let viewer = thread::spawn(move || view(live, &own));
    let sums: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a sender")).collect();
    let (mut lags, seen) = viewer.join().expect("a viewer");
    let most = status(child.id(), "VmHWM:") - idle;
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    lags.sort_unstable();
    let lag = |share: usize| lags.get(lags.len() * share / 100).copied().unwrap_or_default();
    let all = |of: fn(&Sums) -> u64| sums.iter().map(of).sum::<u64>();
    println!(
        "{} packets of {PACKET} bytes recorded, {} dropped by rings, {} delivered; {} MiB of memory; {} synchronisations: p50 {:?}, p99 {:?}, most {:?}",
        all(|it| it.recorded),
        all(|it| it.dropped),
        all(|it| it.delivered),
        most >> 20,
        lags.len(),
        lag(50),
        lag(99),
        lags.last()
    );
    for (number, sums) in sums.iter().enumerate() {
        assert_eq!(sums.recorded, sums.sent + sums.dropped, "{number}: {sums:?}");
        assert_eq!((sums.delivered, sums.lost), (sums.sent, 0), "{number}: over TCP nothing is lost: {sums:?}");
    }
    assert!(all(|it| it.dropped) > 0, "the disk is slower than what is recorded");
    assert_eq!(all(|it| it.delivered), seen, "the viewer sees what is stored");
    assert_eq!(stored(place.path()), seen * PACKET as u64);
    assert!(most <= MEMORY + MEMORY / 10, "{most} bytes more than without senders");
}

/// Returns the bytes of all streams.
fn stored(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    let size = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => stored(&path),
        path if path.file_name().is_some_and(|name| name == "c_0") => path.metadata().expect("a file").len(),
        _ => 0,
    };
    entries.map(size).sum()
}
