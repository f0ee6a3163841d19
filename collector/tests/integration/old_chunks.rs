//! Removal of old chunks.

use super::running::Running;
use super::stream_sender::{EVENT, METADATA, StreamSender, packet};
use std::fs;
use tempfile::TempDir;
use tracepoint_collector::Options;
use tracepoint_reader::account::Account;

/// Runs a collector that keeps two chunks of one packet each, until it has begun the fifth; `blocks` prevents the removal of the first. Returns how
/// many chunks the fifth one's account counts as removed, which of the first two still exist, and the collector's messages.
fn removed(blocks: bool) -> (u64, [bool; 2], Vec<String>) {
    let place = TempDir::new_in("/dev/shm").expect("a directory");
    let collector = Running::with(Options { rotate_size: Some(1), keep: Some(2), ..Options::new(place.path()) });
    let mut sender = StreamSender::open(collector.addresses.control, collector.addresses.data, 1, None);
    let (handle, _) = sender.announce(0);
    sender.say_metadata(0, &[METADATA, EVENT].concat());
    let chunk = |number: u64| place.path().join(format!("host/shop/till-7-1/chunk-{number:06}"));
    for seq in 0..4 {
        sender.send(handle, seq, packet(0, seq, 0));
        sender.sync(1100 + seq * 100);
        sender.until(|_| chunk(seq + 2).join("metadata").exists());
        let metadata = chunk(1).join("metadata");
        if blocks && seq == 0 {
            // `remove_file` fails for a directory.
            fs::remove_file(&metadata).and_then(|()| fs::create_dir(&metadata)).expect("a directory");
        }
    }
    let account = Account::open(&chunk(5)).expect("an account");
    // The storage runs its jobs in order; this packet is queued after the removals.
    sender.send(handle, 4, packet(0, 4, 0));
    sender.sync(1500);
    sender.until(|sender| sender.next.get(&handle) == Some(&5));
    let there = [1, 2].map(|number| chunk(number).exists());
    sender.close();
    (account.chunk.expect("a chunk").removed.chunks, there, collector.end().1)
}

#[test]
fn a_chunk_that_cannot_be_removed_is_not_counted_as_removed() {
    let (count, there, messages) = removed(false);
    // The third chunk is removed after the beginning of the fifth.
    assert_eq!((count, there), (2, [false; 2]), "{messages:#?}");
    let (count, there, messages) = removed(true);
    assert_eq!((count, there), (0, [true; 2]), "no later one is removed, either: {messages:#?}");
    assert!(messages.iter().any(|it| it.contains("cannot remove") && it.contains("chunk-000001")), "{messages:#?}");
}
