//! Missing or empty rings are detected: the file of threads without a ring contains the number of rings made.

use crate::ring_file::{self, Remains, Shape, Tracer};
use std::fs::{self, File};
use tracepoint_reader::internal::RemoteConsumer;
use tracepoint_reader::recover;

/// Offset of the number of rings.
const RINGS: usize = 152;

/// Two rings without any output, and the file of threads without a ring.
fn remains() -> (Remains, [u64; 2]) {
    let ring = |instance, events| {
        let mut tracer = Tracer::new(Shape { instance, ..Shape::default() });
        (0..events).for_each(|_| tracer.fire(20));
        tracer
    };
    let (first, second) = (ring(0, 40), ring(2, 30));
    let mut ringless = Tracer::new(Shape { ringless: true, ..Shape::default() });
    ringless.put_number(RINGS, 2);
    let rings = [("0-0.ring", &first), ("0-1.ring", &second), ("0-orphans.ring", &ringless)];
    (Remains::of_rings(&rings), [first.committed(), second.committed()])
}

#[test]
fn the_last_ring_is_missed_where_nothing_else_tells_of_it() {
    let (whole, [first, second]) = remains();
    let all = recover(&whole.process, &whole.out()).unwrap();
    assert!(all.is_complete() && all.processes[0].records == first + second, "{all:#?}");
    for empty in [true, false] {
        let (remains, _) = remains();
        let last = remains.process.join("0-1.ring");
        if empty {
            fs::write(&last, []).unwrap();
        } else {
            fs::remove_file(&last).unwrap();
        }
        let process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
        let told = process.notes.iter().any(|note| note.contains("no ring in 0-1.ring"));
        assert!(!process.complete && told && process.records == first, "{process:#?}");
    }
}

#[test]
fn the_file_that_counts_the_rings_is_missed() {
    let (remains, [first, second]) = remains();
    fs::write(remains.process.join("0-orphans.ring"), []).unwrap();
    let process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    let told = process.notes.iter().any(|note| note.contains("0-orphans.ring: empty"));
    assert!(!process.complete && told && process.records == first + second, "{process:#?}");
}

/// The process may have been killed before it counted a ring that it had begun; older versions count none.
#[test]
fn a_ring_that_is_not_counted_is_used() {
    for made in [0, 1] {
        let (remains, [first, second]) = remains();
        let path = remains.process.join("0-orphans.ring");
        let mut bytes = fs::read(&path).unwrap();
        bytes[RINGS] = made;
        fs::write(&path, bytes).unwrap();
        let process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
        assert!(process.complete && process.records == first + second, "{process:#?}");
    }
}

/// The account of a consumer in another process for the rings with these names: a count, true if it is complete, and its notes.
fn taken(remains: &Remains, names: &[&str]) -> (u64, bool, Vec<String>) {
    let mut consumer = RemoteConsumer::new(ring_file::metadata().into_bytes()).unwrap();
    for name in names {
        let path = remains.process.join(name);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        assert!(consumer.add(name, &path, fileguard::CheckedFd::of(file).unwrap()));
    }
    let mut records = 0;
    let end = consumer.end(false, |packet| records += packet.events_after - packet.events_before);
    (records, end.account.complete, end.notes)
}

/// A recorder that never saw a ring, because its file was truncated or removed before, does not call the account complete.
#[test]
fn a_recorder_misses_rings_that_it_could_not_read() {
    let (remains, [first, second]) = remains();
    let all = taken(&remains, &["0-0.ring", "0-1.ring", "0-orphans.ring"]);
    assert_eq!(all, (first + second, true, vec![]));
    let (remains, _) = self::remains();
    let (records, complete, notes) = taken(&remains, &["0-0.ring", "0-orphans.ring"]);
    let told =
        notes.iter().any(|note| note.contains("the process has made 2 rings") && note.contains("and 1 could be read"));
    assert!(records == first && !complete && told, "{records}, {complete}: {notes:?}");
}
