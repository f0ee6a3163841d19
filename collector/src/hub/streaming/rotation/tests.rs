//! Tests of input that arrives while a chunk ends or is removed. Each test decides when the hub receives the storage's results.

use super::*;
use crate::hub::Rotation;
use crate::storage::{JobResult, Storage};
use crate::testing::HELLO;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracepoint_reader::internal::sealed;
use tracepoint_wire::PacketHeader;
use tracepoint_wire::stream::{Announce, Hello, NO_SEQ, ROUTE_OFFSET, Route, wire_head};

const METADATA: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u64 stream_instance_id; }; };
stream { id = 3; packet.context := struct { u64 timestamp_begin; u64 timestamp_end; u64 content_size; u64 packet_size;
  u64 packet_seq_num; u64 events_discarded; u32 tid; u32 checksum; u64 events_before; };
  event.header := struct { u32 id; u64 timestamp; }; };
";

/// A session whose chunks have one packet each.
struct OfOne {
    hub: Hub,
    done: UnboundedReceiver<(u64, JobResult)>,
    id: u64,
    handle: u64,
    now: Instant,
    place: TempDir,
}

impl OfOne {
    fn new(keep: usize) -> Self {
        let place = TempDir::new_in("/dev/shm").expect("a directory");
        let (sender, done) = unbounded_channel();
        let storage = Storage::start(0, None, None, sender).expect("a thread");
        let mut hub = Hub::new(place.path().to_owned(), storage);
        hub.rotation = Rotation { size: Some(1), keep: Some(keep), ..Rotation::default() };
        let hello = Hello { trace: [1; 16], ..HELLO };
        let address = std::net::IpAddr::from([127, 0, 0, 1]).into();
        let id = hub.open_streamed(&hello, [4; 16], false, address).expect("a session").session;
        let names = ["host", "shop", "till-7-1", "c", "c_0"];
        let announce = Announce { request: 0, class: 3, instance: 0, packet_size: 4096, names };
        let (handle, _) = hub.announce(id, &announce).expect("a stream");
        hub.streamed_metadata(id, 0, METADATA.as_bytes(), None).expect("it is the first");
        Self { hub, done, id, handle, now: Instant::now(), place }
    }

    /// Sends a packet without events.
    fn packet(&mut self, seq: u64) {
        let mut header = PacketHeader::parse(&[]);
        header.magic = 0xC1FC_1FC1;
        (header.stream.class, header.sequence) = (3, seq);
        (header.content_bits, header.packet_bits) = (96 * 8, 96 * 8);
        let packet = sealed(header.bytes().to_vec());
        let prev_seq = seq.checked_sub(1).unwrap_or(NO_SEQ);
        let head = wire_head(&packet, Route { handle: self.handle, seq, prev_seq, circuit_id: 0 }).expect("a packet");
        let wire = [&head[..], &packet[ROUTE_OFFSET..]].concat();
        assert!(self.hub.wire_packet(self.id, wire, None, self.now));
    }

    /// Passes the storage's results to the hub until one fits, and returns that one.
    fn until(&mut self, fits: impl Fn(&JobResult) -> bool) -> (u64, JobResult) {
        loop {
            let (handle, done) = self.done.blocking_recv().expect("the storage goes on");
            if fits(&done) {
                return (handle, done);
            }
            self.hub.done(handle, done, self.now);
        }
    }

    fn tell(&mut self, (handle, done): (u64, JobResult)) {
        self.hub.done(handle, done, self.now);
    }

    /// Sends the sender's account.
    fn account(&mut self) {
        let mut account = Account::new([1; 16], "shop", 7);
        account.complete = true;
        let bytes = account.to_json();
        assert!(self.hub.account(self.id, 0, &bytes, bytes.len() as u64).is_ok_and(|complete| complete));
    }

    fn chunk(&self, number: u64) -> PathBuf {
        self.place.path().join("host/shop/till-7-1").join(chunk_name(number))
    }

    /// Reads the account of the last chunk: its number, whether it is complete and the last one, and the number of removed chunks.
    fn last(&self, number: u64) -> (u64, bool, bool, u64) {
        assert!(!self.chunk(number + 1).exists(), "there is another chunk");
        let account = Account::open(&self.chunk(number)).expect("an account");
        let chunk = account.chunk.expect("a chunk");
        (chunk.number, account.complete, chunk.last, chunk.removed.chunks)
    }
}

#[test]
fn an_account_that_comes_while_its_chunk_ends_stays_that_of_the_last_chunk() {
    let mut one = OfOne::new(9);
    one.packet(0);
    let marked = one.until(|done| *done == JobResult::Marked);
    one.packet(1);
    one.account();
    one.tell(marked);
    assert_eq!(one.last(1), (1, true, true, 0));
    // The packet that waited makes another rotation due, which does not begin.
    one.until(|done| matches!(done, JobResult::Packet { sequence: 1, size: Some(96), .. }));
    one.hub.rotate_if_due(one.id, one.now);
    assert!(!one.hub.is_rotating(one.id));
    assert_eq!(one.last(1), (1, true, true, 0));
}

#[test]
fn metadata_that_waits_for_a_chunk_is_stored_when_the_session_ends_before_it() {
    let mut one = OfOne::new(9);
    one.packet(0);
    let marked = one.until(|done| *done == JobResult::Marked);
    // As if the storage waited for space: it reaches the mark after the end of the session.
    let more = "/* more */\n";
    one.hub.streamed_metadata(one.id, METADATA.len() as u64, more.as_bytes(), None).expect("it follows");
    one.hub.close_session(one.id, one.now);
    one.now += Duration::from_secs(6);
    one.hub.tidy(one.id, one.now);
    one.tell(marked);
    let mut closed = 0;
    while closed < 2 {
        let done = one.until(|done| *done == JobResult::Closed);
        one.tell(done);
        closed += 1;
    }
    let stored = fs::read_to_string(one.chunk(1).join(METADATA_CHANNEL)).expect("metadata");
    assert_eq!(stored, [METADATA, more].concat());
}

#[test]
fn an_account_that_comes_while_a_chunk_is_removed_counts_it() {
    let mut one = OfOne::new(1);
    one.packet(0);
    let removed = one.until(|done| matches!(done, JobResult::Removed { .. }));
    one.account();
    assert_eq!(one.last(2), (2, true, true, 0));
    one.tell(removed);
    assert_eq!((one.last(2), one.chunk(1).exists()), ((2, true, true, 1), false));
}

#[test]
fn a_sender_that_waits_no_longer_leaves_nothing_behind() {
    let mut one = OfOne::new(9);
    assert!(one.hub.pass_gaps(one.id));
    assert_eq!(one.hub.storage.impatient(), 2, "the stream and the metadata");
    one.hub.viewer(one.id, true, one.now);
    one.hub.close_session(one.id, one.now);
    for _ in 0..2 {
        let closed = one.until(|done| *done == JobResult::Closed);
        // The sender gives up once more while the files are closed, which the hub has not heard of yet.
        assert!(one.hub.pass_gaps(one.id));
        one.tell(closed);
    }
    assert!(one.hub.pass_gaps(one.id));
    assert_eq!(one.hub.storage.impatient(), 0);
}
