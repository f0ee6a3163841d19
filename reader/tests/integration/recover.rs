//! The remains of a killed process become a trace that balances and that babeltrace2 reads: every event that was committed
//! and still exists, once.

mod damage;
mod directories;

use std::fs;
use std::path::Path;

use crate::recover::damage::patched;
use crate::ring_file::{Consumer, Lost, Moment, Remains, Shape, Tracer, babeltrace, numbers};
use tracepoint_reader::account::Account;
use tracepoint_reader::recover::RecoveredProcess;
use tracepoint_reader::{Metadata, PacketDecoder, Packets, recover, verify};

/// Recovers a process that is completely readable.
fn recovered(remains: &Remains, expected: &[u32]) -> RecoveredProcess {
    let process = taken(remains, expected);
    assert!(process.complete, "{process:#?}");
    let report = verify(&remains.out()).unwrap();
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}\n{process:#?}");
    process
}

/// Recovers a process, and checks its events.
fn taken(remains: &Remains, expected: &[u32]) -> RecoveredProcess {
    let mut recovered = recover(&remains.session(), &remains.out()).unwrap();
    assert_eq!((recovered.processes.len(), recovered.failed.len()), (1, 0));
    let process = recovered.processes.remove(0);
    let peer = babeltrace(&remains.out());
    assert_eq!(numbers(&peer), expected, "{process:#?}");
    assert_eq!(crate::hand::ours(&remains.out()), peer);
    assert_eq!(process.records, expected.len() as u64);
    process
}

fn lost(process: &RecoveredProcess, reason: &str) -> u64 {
    process.lost.get(reason).copied().unwrap_or(0)
}

fn account(remains: &Remains) -> Account {
    Account::open(&remains.out()).unwrap()
}

/// A separate ring for each kill: before each store, and after the last.
fn killed_anywhere(shape: Shape, program: impl Fn(&mut Tracer)) -> Vec<(Tracer, RecoveredProcess)> {
    let mut whole = Tracer::new(shape);
    program(&mut whole);
    let kill = |fuse| {
        let mut tracer = Tracer::new(shape);
        tracer.fuse = fuse;
        program(&mut tracer);
        let remains = Remains::of(&tracer);
        let process = recovered(&remains, &tracer.expected());
        assert_eq!(account(&remains).channels[0].events.iter().map(|e| e.recorded).sum::<u64>(), tracer.committed());
        (tracer, process)
    };
    assert!(whole.stores > 40, "there is something to interrupt");
    (0..=whole.stores).map(kill).collect()
}

#[test]
fn undrained_rings_are_recovered_completely() {
    let mut tracer = Tracer::new(Shape::default());
    (0..20).for_each(|n| tracer.fire(n * 3));
    let remains = Remains::of(&tracer);
    let process = recovered(&remains, &(0..20).collect::<Vec<_>>());
    assert_eq!((process.packets_from_outputs, process.mended, process.torn_places), (0, 1, 0));
    assert_eq!((process.pid, process.session.as_str(), process.streams), (4242, "shop", 1));
    assert!(process.lost.is_empty() && process.notes.is_empty(), "{process:#?}");
    let account = account(&remains);
    assert_eq!((account.session.as_str(), account.pid, account.complete), ("shop", 4242, true));
    assert_eq!(account.channels[0].name, "channel0");
    assert_eq!(account.channels[0].streams[0].file, "channel0_0");
}

#[test]
fn a_full_ring_discards_the_newest_events() {
    let mut tracer = Tracer::new(Shape::default());
    (0..60).for_each(|_| tracer.fire(40));
    tracer.fire(5000);
    let process = recovered(&Remains::of(&tracer), &tracer.expected());
    assert_eq!(process.records + lost(&process, "ring_full"), 60);
    assert_eq!(lost(&process, "too_large"), 1);
}

#[test]
fn packets_in_ring_and_output_are_recovered_once() {
    let mut tracer = Tracer::new(Shape::default());
    for round in 0..5 {
        (0..15).for_each(|n| tracer.fire(30 + n + round));
        tracer.drain(Consumer::Keeps);
    }
    let remains = Remains::of(&tracer);
    let process = recovered(&remains, &(0..75).collect::<Vec<_>>());
    assert!(process.packets_from_outputs > 4 && process.packets_from_rings == 1, "{process:#?}");
    // A missing output is reported, and packets that were only there count as lost after the ring.
    fs::remove_dir_all(remains.out()).unwrap();
    fs::remove_dir_all(&remains.output).unwrap();
    let mut process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    assert!(verify(&remains.out()).unwrap().passed());
    assert!(process.records < 75 && process.records + lost(&process, "sink") == 75, "{process:#?}");
    let note = process.notes.remove(0);
    assert!(note.contains("kept does not exist any more"), "{note}");
}

/// Two rings whose packets an output has, except for the last one of each; `0-0.ring` is then damaged by `damage`.
fn with_outputs(what: &str, damage: impl Fn(&Path)) {
    let ring = |instance| {
        let mut tracer = Tracer::new(Shape { instance, ..Shape::default() });
        (0..40).for_each(|_| tracer.fire(20));
        tracer.drain(Consumer::Keeps);
        tracer
    };
    let (first, second) = (ring(0), ring(2));
    let remains = Remains::of_rings(&[("0-0.ring", &first), ("0-1.ring", &second)]);
    let all = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    assert!(all.complete && all.records == first.committed() + second.committed(), "{all:#?}");
    fs::remove_dir_all(remains.out()).unwrap();
    let metadata = Metadata::parse(crate::ring_file::metadata().as_bytes()).unwrap();
    let kept =
        Packets::open(&metadata, &remains.output.join("channel0_0")).unwrap().map(Result::unwrap).last().unwrap();
    let tail = PacketDecoder::new(&metadata, &first.output(0)[kept.offset as usize..]).unwrap().count() as u64;
    let kept = kept.events_before.unwrap() + tail;
    assert!(kept > 0 && kept < first.committed());

    damage(&remains.process.join("0-0.ring"));
    let process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    let told = process.notes.iter().any(|note| note.contains("0-0.ring") || note.contains("channel0_0"));
    assert!(!process.complete && told, "{what}: {process:#?}");
    assert_eq!(process.records, kept + second.committed(), "{what}: {process:#?}");
    assert_eq!(numbers(&babeltrace(&remains.out())).len() as u64, process.records, "{what}");
    let failures: String = verify(&remains.out()).unwrap().failures().map(|check| check.rule).collect();
    assert!(failures.contains('A') && !failures.contains(['B', 'I', 'J', 'L', 'N', 'P', 'Q']), "{what}: {failures}");

    // The same if no other ring is left, and if no ring is left.
    for ring in ["0-1.ring", "0-0.ring"] {
        fs::remove_dir_all(remains.out()).unwrap();
        let _ = fs::remove_file(remains.process.join(ring));
        let process = recover(&remains.session(), &remains.out()).unwrap().processes.remove(0);
        assert!(!process.complete && process.records >= kept, "{what} without {ring}: {process:#?}");
        assert_eq!(process.pid, 4242, "{what} without {ring}");
    }
}

#[test]
fn packets_of_outputs_are_kept_where_the_ring_is_lost() {
    let change = |path: &Path, act: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(path).unwrap();
        act(&mut bytes);
        fs::write(path, bytes).unwrap();
    };
    with_outputs("gone", |path| fs::remove_file(path).unwrap());
    with_outputs("empty", |path| fs::write(path, []).unwrap());
    with_outputs("cut off", |path| change(path, &|bytes| bytes.truncate(5000)));
    with_outputs("no header", |path| change(path, &|bytes| bytes[..4096].fill(0)));
    with_outputs("garbage", |path| change(path, &|bytes| bytes[..4096].fill(7)));
    with_outputs("no places", |path| change(path, &|bytes| bytes[112..120].fill(0)));
    with_outputs("sparse", |path| {
        fs::write(path, []).unwrap();
        fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    });
    with_outputs("too long", |path| fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap());
}

#[test]
fn a_ring_that_was_being_allocated_is_no_loss() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    let remains = Remains::of(&tracer);
    // The process was killed after setting the file's length and before allocating its space, and had not written its header.
    fs::File::create(remains.process.join("0-1.ring")).unwrap().set_len(1 << 20).unwrap();
    let process = recovered(&remains, &tracer.expected());
    assert!(process.complete, "{process:#?}");
}

#[test]
fn zeroed_packets_that_nobody_took_are_missing() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(20));
    for packet in 0..3 {
        let mut tracer = tracer.clone();
        let (place, size) = (tracer.place_of(packet), tracer.shape.place);
        tracer.put(place, &vec![0; size]);
        let process = patched(&tracer, &format!("packet number {} is missing there", packet + 1));
        assert!(process.missing > 0 && process.records + process.missing == tracer.committed(), "{process:#?}");
    }
    // Packets already taken may be missing: their memory may have been released.
    tracer.drain(Consumer::Keeps);
    let place = tracer.place_of(0);
    tracer.put(place, &vec![0; tracer.shape.place]);
    let process = recovered(&Remains::of(&tracer), &tracer.expected());
    assert_eq!((process.missing, process.torn_places), (0, 0), "{process:#?}");
}

#[test]
fn the_first_output_that_has_the_stream_is_used() {
    let mut tracer = Tracer::new(Shape::default());
    for _ in 0..4 {
        (0..30).for_each(|_| tracer.fire(9));
        tracer.drain(Consumer::Keeps);
    }
    let remains = Remains::of(&tracer);
    let [foreign, empty] = ["foreign", "empty"].map(|name| remains.place.path().join(name));
    fs::create_dir(&foreign).unwrap();
    let mut other = tracer.output(0).to_vec();
    other[4] ^= 1;
    fs::write(foreign.join("channel0_0"), other).unwrap();
    fs::create_dir(&empty).unwrap();
    let list = [empty, "/no such directory".into(), remains.output.clone(), foreign.clone()]
        .map(|path| format!("ctf {}\n", path.display()));
    fs::write(remains.process.join("outputs"), format!("text /dev/null\n{}", list.concat())).unwrap();
    recovered(&remains, &tracer.expected());
    fs::remove_dir_all(remains.out()).unwrap();
    let list = [foreign, remains.output.clone()].map(|path| format!("ctf {}\n", path.display()));
    fs::write(remains.process.join("outputs"), list.concat()).unwrap();
    let process = taken(&remains, &tracer.expected());
    assert!(!process.complete && process.notes[0].contains("another trace"), "{process:#?}");
}

#[test]
fn a_torn_last_packet_of_the_output_is_dropped() {
    let mut tracer = Tracer::new(Shape::default());
    (0..40).for_each(|_| tracer.fire(5));
    tracer.flush();
    tracer.drain(Consumer::Keeps);
    let remains = Remains::of(&tracer);
    let file = remains.output.join("channel0_0");
    let whole = fs::read(&file).unwrap();
    // All of it is still in the ring.
    for length in (0..whole.len()).step_by(37) {
        fs::write(&file, &whole[..length]).unwrap();
        let process = recovered(&remains, &tracer.expected());
        assert!(process.notes.iter().all(|note| note.contains("a part of a packet")), "{process:#?}");
        fs::remove_dir_all(remains.out()).unwrap();
    }
    // Nothing is taken after bytes that are not a packet.
    let mut broken = whole.clone();
    broken[96] ^= 1;
    fs::write(&file, broken).unwrap();
    let process = taken(&remains, &tracer.expected());
    assert!(!process.complete && process.notes[0].contains("byte 96: a packet should start here"), "{process:#?}");
}

#[test]
fn losses_of_the_sink_are_counted() {
    let mut tracer = Tracer::new(Shape::default());
    for round in 0..9 {
        (0..20).for_each(|_| tracer.fire(6));
        tracer.drain(if round % 3 == 1 { Consumer::Forgets } else { Consumer::Keeps });
    }
    let process = recovered(&Remains::of(&tracer), &tracer.expected());
    assert!(lost(&process, "sink") > 0);
    assert_eq!(process.records + lost(&process, "sink"), tracer.committed());
}

#[test]
fn a_wrapped_flight_recorder_is_recovered() {
    let mut tracer = Tracer::new(Shape { overwrite: true, ..Shape::default() });
    (0..500).for_each(|n| tracer.fire(n % 70));
    let process = recovered(&Remains::of(&tracer), &tracer.expected());
    assert!(process.records > 20);
    assert_eq!(process.records + lost(&process, "overwritten"), 500);
}

#[test]
fn killed_while_packets_are_drained_and_switched() {
    let shape = Shape { places: 2, place: 512, ..Shape::default() };
    let kills = killed_anywhere(shape, |tracer| {
        for _ in 0..3 {
            (0..3).for_each(|_| tracer.fire(150));
            tracer.fire(0);
            tracer.filtered(0);
            tracer.drain(Consumer::Keeps);
        }
        tracer.lost(1, Lost::NoRing);
    });
    let any = |what: &dyn Fn(&RecoveredProcess) -> bool| kills.iter().any(|(_, process)| what(process));
    assert!(any(&|process| lost(process, "killed") == 1));
    assert!(any(&|process| process.uncounted == 1));
    assert!(any(&|process| process.mended == 0 && process.records > 0), "between two packets");
    assert!(any(&|process| process.notes.iter().any(|note| note.contains("part of a packet"))));
    assert!(kills.iter().all(|(_, process)| lost(process, "killed") + process.uncounted <= 1));
}

#[test]
fn killed_while_packets_are_overwritten() {
    let shape = Shape { overwrite: true, places: 2, place: 512, ..Shape::default() };
    let kills = killed_anywhere(shape, |tracer| (0..14).for_each(|_| tracer.fire(110)));
    // The nested stream's two places, and the one being prepared.
    assert!(kills.iter().any(|(_, process)| process.unused_places == 3 && lost(process, "overwritten") > 0));
    assert!(kills.iter().any(|(tracer, process)| process.uncounted == 1 && tracer.committed() > 10));
}

#[test]
fn killed_in_a_signal_handler() {
    let kills = killed_anywhere(Shape::default(), |tracer| {
        tracer.fire(30);
        tracer.fire_interrupted(30, Moment::Writing, &[200, 200, 0, 2000]);
        tracer.fire(0);
    });
    assert!(kills.iter().any(|(_, process)| lost(process, "killed") == 2), "one in each stream");
    let (_, whole) = kills.last().unwrap();
    assert_eq!((whole.streams, whole.records, lost(whole, "too_large")), (2, 6, 1));
    // The handler's record was committed, the interrupted one was not.
    assert!(kills.iter().any(|(_, process)| process.uncounted == 1 && lost(process, "killed") == 1));
}

/// A handler that runs between two counters finds the ring free.
#[test]
fn killed_in_a_signal_handler_between_counters() {
    for moment in [Moment::Fired, Moment::Committed] {
        let shape = Shape { overwrite: true, places: 2, place: 512, ..Shape::default() };
        let kills = killed_anywhere(shape, |tracer| {
            (0..5).for_each(|_| tracer.fire(90));
            tracer.fire_interrupted(0, moment, &[90, 90, 90, 90, 90, 90]);
        });
        // That the interrupted event was committed can be known even if its packet is gone.
        let two = |process: &RecoveredProcess| lost(process, "killed") + process.uncounted == 2;
        assert!(kills.iter().any(|(_, process)| two(process) && lost(process, "overwritten") > 0), "{moment:?}");
    }
}

/// One thread after another without a ring.
#[test]
fn ringless_events_have_their_own_stream() {
    let mut ring = Tracer::new(Shape::default());
    (0..5).for_each(|_| ring.fire(0));
    let mut ringless = Tracer::new(Shape { ringless: true, ..Shape::default() });
    (0..7).for_each(|n| ringless.lost(n % 2, Lost::NoRing));
    let whole = ringless.stores;
    for fuse in 0..=whole {
        let mut ringless = Tracer::new(ringless.shape);
        ringless.fuse = fuse;
        (0..7).for_each(|n| ringless.lost(n % 2, Lost::NoRing));
        let remains = Remains::of_rings(&[("0-0.ring", &ring), ("0-orphans.ring", &ringless)]);
        let process = recovered(&remains, &ring.expected());
        assert_eq!(lost(&process, "no_ring") + lost(&process, "killed"), fuse.div_ceil(3));
        assert_eq!(remains.out().join("channel0_4294967295").exists(), fuse > 0);
    }
}

#[test]
fn unused_rings_leave_no_stream() {
    let mut used = Tracer::new(Shape::default());
    used.fire(0);
    let spare = Tracer::new(Shape { instance: 2, ..Shape::default() });
    let mut not_begun = Tracer::new(Shape { instance: 4, ..Shape::default() });
    not_begun.put(0, &[0; 8]);
    let remains = Remains::of_rings(&[("0-0.ring", &used), ("0-1.ring", &spare), ("0-2.ring", &not_begun)]);
    fs::write(remains.process.join("0-3.ring"), []).unwrap();
    let process = recovered(&remains, &[0]);
    assert_eq!((process.rings, process.streams), (2, 1));
    let files: Vec<_> = fs::read_dir(remains.out()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "metadata, account and one stream: {files:?}");
}
