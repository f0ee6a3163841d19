//! The order of events of several traces and files at equal times.

use crate::hand::{Packet, assert_same, one_event, ours};
use std::fs;
use std::path::Path;

fn write(directory: &Path, metadata: &str, files: &[(&str, Vec<u8>)]) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("metadata"), metadata).unwrap();
    for (name, bytes) in files {
        fs::write(directory.join(name), bytes).unwrap();
    }
}

/// Packets that end with an event at the time at which the next one of this or another stream begins.
fn packets(instance: u64, label: u8) -> Vec<u8> {
    let one = |number, times: [u64; 2]| {
        let records = times.map(|time| (0, time, [label]));
        let records = records.each_ref().map(|(id, time, data)| (*id, *time, &data[..]));
        Packet { instance, number, before: number * 2, ..Packet::of(&records) }.bytes()
    };
    [one(0, [1000, 2000]), one(1, [2000, 2000]), one(2, [2000, 3000 - u64::from(label)])].concat()
}

#[test]
fn traces_are_ordered_by_their_uuid() {
    let root = tempfile::tempdir().unwrap();
    for (name, uuid, label) in [("a", "ff000000", 1u8), ("b", "00000000", 2), ("c", "7f000000", 3)] {
        let metadata = one_event("u8 a;").replace("0f1e2d3c", uuid);
        let files = [("x", packets(7, label)), ("y", packets(3, 10 + label))];
        write(&root.path().join(name), &metadata, &files);
    }
    assert_same(root.path());
    let first: Vec<_> =
        ours(root.path()).lines().take(3).map(|line| line.rsplit_once("a = ").unwrap().1.to_owned()).collect();
    assert_eq!(first, ["12 }", "2 }", "13 }"]);
}

/// Files of one instance whose packets have no times cannot be ordered, and are separate streams. At equal times, babeltrace2 orders them
/// as the file system lists them, whereas they are ordered by name here; no times are equal below.
#[test]
fn files_without_times_of_packets_are_merged() {
    let metadata = one_event("u8 a;").replace("ts64 timestamp_begin; ts64 timestamp_end; ", "");
    let strip = |mut bytes: Vec<u8>| {
        bytes.drain(32..48);
        // The sizes, in bits.
        let bits = (bytes.len() as u64 * 8).to_le_bytes();
        bytes[32..40].copy_from_slice(&bits);
        bytes[40..48].copy_from_slice(&bits);
        bytes
    };
    let one = |time: u64, label: u8| strip(Packet::of(&[(0, time, &[label]), (0, time + 1000, &[label])]).bytes());
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &metadata, &[("a", one(1500, 1)), ("b", one(1000, 2)), ("c", one(2200, 3))]);
    assert_same(root.path());
    assert_eq!(ours(root.path()).lines().count(), 6);
}

/// Streams in which most times are equal: events at the end of a packet, at the time at which the next one of any stream begins, and packets that end
/// later than their last event.
#[test]
fn events_at_the_ends_of_packets_are_merged_as_by_babeltrace() {
    for seed in 1..40_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut below = |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % bound
        };
        let files: Vec<_> = (0..2 + below(3))
            .map(|file| {
                let (mut time, mut before) = (1000 + below(2), 0);
                let packets: Vec<_> = (0..=below(4))
                    .map(|number| {
                        let begin = time;
                        let records: Vec<_> = (0..below(4))
                            .map(|n| {
                                time += below(2);
                                (0, time, [(16 * file + 4 * number + n) as u8])
                            })
                            .collect();
                        time += below(2);
                        let records: Vec<_> = records.iter().map(|(id, time, data)| (*id, *time, &data[..])).collect();
                        let packet =
                            Packet { instance: file, number, before, begin, end: time, ..Packet::of(&records) };
                        before += records.len() as u64;
                        packet.bytes()
                    })
                    .collect();
                (format!("s{file}"), packets.concat())
            })
            .collect();
        let root = tempfile::tempdir().unwrap();
        let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
        write(root.path(), &one_event("u8 a;"), &files);
        let (expected, found) = (crate::hand::babeltrace(root.path()), ours(root.path()));
        assert_eq!(found, expected, "seed {seed}");
    }
}
