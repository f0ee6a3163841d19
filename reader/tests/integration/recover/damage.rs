//! Damaged and contradictory files.

use std::fs;

use super::{lost, recovered, taken};
use crate::ring_file::{Consumer, Remains, Shape, Tracer, babeltrace, numbers};
use tracepoint_reader::recover::RecoveredProcess;
use tracepoint_reader::{recover, verify};

/// A damaged ring does not affect the others; if it is the only one, its damage is the error.
fn damaged(change: impl Fn(&mut Tracer), message: &str) {
    let mut good = Tracer::new(Shape { instance: 2, ..Shape::default() });
    good.fire(0);
    let mut bad = Tracer::new(Shape::default());
    bad.fire(1);
    change(&mut bad);
    let remains = Remains::of(&bad);
    let error = recover(&remains.process, &remains.out()).unwrap_err().to_string();
    assert!(error.contains("0-0.ring: byte ") && error.contains(message), "{error}");
    let remains = Remains::of_rings(&[("0-0.ring", &bad), ("0-1.ring", &good)]);
    let process = taken(&remains, &[0]);
    assert!(!process.complete && process.notes[0].contains(message), "{process:#?}");
    assert!(!verify(&remains.out()).unwrap().passed());
}

#[test]
fn damaged_headers_are_reported() {
    let number = |at, number: u64| move |tracer: &mut Tracer| tracer.put_number(at, number);
    damaged(|tracer| tracer.put(0, b"tp-rung\n"), "byte 0: this is not a ring file");
    damaged(|tracer| tracer.put(8, &[2]), "byte 8: version 2 of the ring format is not understood; use a newer reader");
    damaged(|tracer| tracer.put(12, &[1]), "byte 12: header and identity");
    damaged(|tracer| tracer.put(44, &[3]), "byte 44: 3 is not a policy");
    damaged(|tracer| tracer.put(24, &[0]), "byte 24: the ring belongs to another trace");
    damaged(|tracer| tracer.put(40, &[1]), "byte 40: with the metadata beside it: the packet belongs to stream 1");
    damaged(number(48, u64::MAX), "byte 48: 18446744073709551615 is not a stream instance id");
    damaged(number(56, 1 << 40), "byte 56: the account has 1099511627776 events");
    damaged(number(56, 1 << 16), "byte 64: the account: 8388608 bytes at 4096 are not inside");
    damaged(number(64, 8), "byte 64: the account");
    damaged(number(72, 64), "byte 72: an entry of the account");
    damaged(number(80, 32), "byte 80: packets have fields for the network");
    for at in [96, 120] {
        damaged(number(at, 1 << 60), "packets: ");
        damaged(number(at, u64::MAX - 7), "packets: ");
        damaged(number(at + 8, 0), "a sub-buffer of the");
        damaged(number(at + 8, 1 << 40), "a sub-buffer of the");
        damaged(number(at + 8, 513), "a sub-buffer of the");
        damaged(number(at + 16, u64::MAX), "are more than a file holds");
        damaged(number(at + 16, 1 << 30), "are not inside");
    }
    for (at, most) in [(1088, 1022), (2112, 254), (2368, 254), (2624, 1022), (3648, 64)] {
        let longer = move |tracer: &mut Tracer| tracer.put(at, &(most + 1u16).to_le_bytes());
        damaged(longer, &format!("byte {at}: a text has {} bytes, and the field holds {most}", most + 1));
    }
    for name in [*b"../../et", *b"chan/nel", *b"\0hannel0", *b".hannel0"] {
        damaged(move |tracer| tracer.put(3650, &name), "is not a channel name");
    }
    damaged(|tracer| tracer.bytes.truncate(6000), "byte 6000: the file ends here");
    damaged(|tracer| tracer.bytes.truncate(4000), "byte 0: the file ends within the 4096 bytes from here on");
    damaged(|tracer| tracer.bytes.truncate(5), "byte 0: the file ends within the 8 bytes from here on");
}

/// Recovers a ring that was damaged in one place; checks that the damage is reported and the result is consistent.
pub(super) fn patched(tracer: &Tracer, message: &str) -> RecoveredProcess {
    let remains = Remains::of(tracer);
    let recovered = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    assert!(!recovered.complete && recovered.notes.iter().any(|note| note.contains(message)), "{recovered:#?}");
    let text = babeltrace(&remains.out());
    assert_eq!(numbers(&text).len() as u64, recovered.records);
    let wrong: String = verify(&remains.out()).unwrap().failures().map(|check| check.rule).collect();
    assert!(wrong.contains('A') && !wrong.contains(['B', 'I', 'J', 'L', 'N', 'P', 'Q']), "{wrong}: {recovered:#?}");
    recovered
}

#[test]
fn damaged_packets_are_skipped_and_counted() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    let whole = Remains::of(&tracer);
    let all = recovered(&whole, &tracer.expected()).records;
    let damage = |packet: u64, at: usize, bytes: &[u8], message: &str| {
        let mut tracer = tracer.clone();
        let place = tracer.place_of(packet);
        tracer.put(place + at, bytes);
        let process = patched(&tracer, message);
        assert_eq!(process.torn_places, 1, "{process:#?}");
        assert!(process.records < all && process.records + lost(&process, "sink") == all, "{process:#?}");
    };
    damage(1, 4, &[0], "of another trace or stream");
    damage(1, 24, &[9], "of another trace or stream");
    damage(1, 64, &[9], "it holds packet number 9, where 2 should be");
    damage(1, 48, &[1], "bits does not fit");
    damage(1, 48, &[0; 8], "bits does not fit");
    damage(1, 48, &[0xFF; 8], "bits does not fit");
    damage(1, 56, &[0], "its packet is closed");
    damage(1, 40, &[0], "it ends before its last event");
    damage(2, 32, &[0, 0], "it begins before");
    damage(1, 88, &[0], "its events_before is less");
    damage(1, 96, &[7], "has the id 7");
    damage(1, 98, &[0; 6], "it ends before its last event");
    // The contents of the last packet are known from the counter alone, whether it was closed or not.
    damage(3, 48, &[1], "bits does not fit");
    tracer.flush();
    let damage = |packet: u64, at: usize, bytes: &[u8]| {
        let mut tracer = tracer.clone();
        let place = tracer.place_of(packet);
        tracer.put(place + at, bytes);
        let process = patched(&tracer, "of another trace or stream");
        assert!(process.records < all && process.records + lost(&process, "sink") == all, "{process:#?}");
    };
    damage(3, 4, &[0]);
}

#[test]
fn contradictory_counters_are_reported() {
    let mut tracer = Tracer::new(Shape::default());
    (0..10).for_each(|_| tracer.fire(0));
    for (at, number, message) in [
        (4096, 3, "event 0 has more outcomes than it fired"),
        (4096 + 8, 13, "its events count 3 more records"),
        (4096 + 8, u64::MAX, "its events count"),
        (320, 99, "it counts 99 records, and 10 are committed"),
        (320, 9, "it counts 9 records, and 10 are committed"),
        (328, u64::MAX, "closed packets are out of range"),
        (336, 5, "its streams count 5 more losses"),
        (1024, 4243, "the ring belongs to process 4243, and the files beside it to 4242"),
    ] {
        let mut tracer = tracer.clone();
        tracer.put_number(at, number);
        patched(&tracer, message);
    }
    // A packet was closed when its stream had lost more than the counter shows.
    (0..50).for_each(|_| tracer.fire(60));
    tracer.drain(Consumer::Keeps);
    (0..10).for_each(|_| tracer.fire(60));
    assert!(tracer.number(336) > 1);
    tracer.put_number(336, 1);
    assert_eq!(patched(&tracer, " losses, and its counter 1").torn_places, 0);
}

/// Metadata not written by this tracer, for packets with another layout.
#[test]
fn metadata_of_other_packets_is_refused() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    for (from, to, message) in [
        ("u64 content_size; u64 packet_size;", "u64 packet_size; u64 content_size;", "sizes contradict each other"),
        ("u64 events_discarded; u32 tid;", "u32 tid; u64 events_discarded;", "another packet than the tracer writes"),
        (
            "u32 tid; integer { size = 64; align = 64; signed = false; } events_before;",
            "u32 tid;",
            "another packet than the tracer writes",
        ),
        ("u32 tid;", "u64 tid; u64 more;", "sizes contradict each other"),
        ("u64 stream_instance_id;", "", "sizes contradict each other"),
        // Alignment pads a narrow field.
        ("u64 events_discarded; u32 tid;", "u16 events_discarded; u64 tid;", "another packet than the tracer writes"),
        ("u32 tid;", "u16 tid;", "another packet than the tracer writes"),
        ("u32 stream_id;", "u16 stream_id;", "another packet than the tracer writes"),
        ("size = 64; align = 64;", "size = 48; align = 64;", "another packet than the tracer writes"),
    ] {
        let remains = Remains::of(&tracer);
        let text = crate::ring_file::metadata();
        assert!(text.contains(from));
        fs::write(remains.process.join("metadata"), text.replace(from, to)).unwrap();
        let error = recover(&remains.process, &remains.out()).unwrap_err().to_string();
        assert!(error.contains("byte 40: with the metadata beside it: ") && error.contains(message), "{from}: {error}");
        assert!(!remains.out().join("metadata").exists());
    }
}

/// Only the output is left: its packets end a bit before the position of their first event in the metadata.
#[test]
fn metadata_of_other_packets_is_refused_without_rings() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    tracer.drain(Consumer::Keeps);
    let remains = Remains::of(&tracer);
    fs::remove_file(remains.process.join("0-0.ring")).unwrap();
    let text = crate::ring_file::metadata().replace("size = 64; align = 64;", "size = 63; align = 64;");
    fs::write(remains.process.join("metadata"), text).unwrap();
    let process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    assert!(!process.complete && process.records == 0, "{process:#?}");
    let told = "channel0_0: the metadata describes another packet than the tracer writes";
    assert!(process.notes.iter().any(|note| note.contains(told)), "{process:#?}");
}

/// Only the output is left, and its first packet is damaged: the written stream must not begin after its first packet.
#[test]
fn a_stream_begins_with_the_first_packet_that_is_taken() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    tracer.drain(Consumer::Keeps);
    let remains = Remains::of(&tracer);
    fs::remove_file(remains.process.join("0-0.ring")).unwrap();
    // After the header of 96 bytes: a packet without events, which opens the stream.
    let mut kept = tracer.output(0)[96..].to_vec();
    for time in [32, 40] {
        kept[time..time + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    }
    // The id of its first event.
    kept[96..98].copy_from_slice(&[0xf2; 2]);
    fs::write(remains.output.join("channel0_0"), kept).unwrap();
    let process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    assert!(!process.complete && process.records > 0, "{process:#?}");
    assert!(process.notes.iter().any(|note| note.contains("packet 1 of its output: ")), "{process:#?}");
    let report = verify(&remains.out()).unwrap();
    assert!(report.failures().all(|check| check.rule != 'P'), "{:#?}", report.failures().collect::<Vec<_>>());
}

#[test]
fn two_rings_of_one_stream_are_not_mixed() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of_rings(&[("0-0.ring", &tracer), ("0-1.ring", &tracer)]);
    let process = taken(&remains, &[0]);
    assert!(process.notes[0].contains("another ring has the same streams"), "{process:#?}");
}
