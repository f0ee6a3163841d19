//! What a killed process left behind becomes a trace that balances and that babeltrace2 reads: every event that was committed
//! and is there still, once.

use std::fs;
use std::path::Path;

use crate::ring_file::{Consumer, Lost, Moment, Remains, Shape, Tracer, babeltrace, numbers};
use tracepoint_reader::account::Account;
use tracepoint_reader::recover::{RecoveredProcess, recover_with};
use tracepoint_reader::{Metadata, PacketDecoder, Packets, RecoverError, recover, verify};

/// Recovers a process that can be read to the last byte.
fn recovered(remains: &Remains, expected: &[u32]) -> RecoveredProcess {
    let process = taken(remains, expected);
    assert!(process.complete, "{process:#?}");
    let report = verify(&remains.out()).unwrap();
    let failures: Vec<_> = report.failures().collect();
    assert!(failures.is_empty(), "{failures:#?}\n{process:#?}");
    process
}

/// Recovers a process, and checks that its events come out.
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

/// A ring of its own for each kill: before each store, and after the last.
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
    // A missing output is reported, and the packets that only it had are lost behind the ring.
    fs::remove_dir_all(remains.out()).unwrap();
    fs::remove_dir_all(&remains.output).unwrap();
    let mut process = recover(&remains.process, &remains.out()).unwrap().processes.remove(0);
    assert!(verify(&remains.out()).unwrap().passed());
    assert!(process.records < 75 && process.records + lost(&process, "sink") == 75, "{process:#?}");
    let note = process.notes.remove(0);
    assert!(note.contains("kept does not exist any more"), "{note}");
}

/// Two rings whose packets an output has, but for the last one of each; `0-0.ring` is then damaged by `damage`.
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

    // The same if no other ring is left, and if none is left at all.
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
    // The process was killed between giving the file its length and allocating its space, and had not written its header.
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
    // Those that were taken need not be there: their memory may have been given back.
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
    // All of it is in the ring still.
    for length in (0..whole.len()).step_by(37) {
        fs::write(&file, &whole[..length]).unwrap();
        let process = recovered(&remains, &tracer.expected());
        assert!(process.notes.iter().all(|note| note.contains("a part of a packet")), "{process:#?}");
        fs::remove_dir_all(remains.out()).unwrap();
    }
    // Behind something that is no packet nothing is taken.
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
    // The nested stream's two places, and the one that is being prepared.
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

/// A handler that comes between two counters finds the ring free.
#[test]
fn killed_in_a_signal_handler_between_counters() {
    for moment in [Moment::Fired, Moment::Committed] {
        let shape = Shape { overwrite: true, places: 2, place: 512, ..Shape::default() };
        let kills = killed_anywhere(shape, |tracer| {
            (0..5).for_each(|_| tracer.fire(90));
            tracer.fire_interrupted(0, moment, &[90, 90, 90, 90, 90, 90]);
        });
        // That the interrupted event was committed can be known when its packet is gone.
        let two = |process: &RecoveredProcess| lost(process, "killed") + process.uncounted == 2;
        assert!(kills.iter().any(|(_, process)| two(process) && lost(process, "overwritten") > 0), "{moment:?}");
    }
}

/// Thread after thread without a ring.
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

#[test]
fn an_empty_directory_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let error = recover(place.path(), &out).unwrap_err().to_string();
    assert!(error.contains("there are no ring files in it; name the directory of a process"), "{error}");
    let error = recover(&place.path().join("missing"), &out).unwrap_err().to_string();
    assert!(error.contains("there is no such directory"), "{error}");
    let mut spare = Tracer::new(Shape::default());
    spare.put(0, &[0; 8]);
    let remains = Remains::of(&spare);
    let error = recover(&remains.process, &remains.out()).unwrap_err().to_string();
    assert!(error.contains("had not begun to record"), "{error}");
}

/// A process writes its metadata before it switches on any event.
#[test]
fn a_process_that_was_killed_before_its_metadata_has_lost_nothing() {
    let mut spare = Tracer::new(Shape::default());
    spare.put(0, &[0; 8]);
    for spare in [spare, Tracer::new(Shape::default())] {
        let remains = Remains::of(&spare);
        fs::write(remains.process.join("metadata"), "").unwrap();
        assert!(matches!(recover(&remains.process, &remains.out()), Err(RecoverError::NotBegun { .. })));
        fs::remove_file(remains.process.join("metadata")).unwrap();
        assert!(matches!(recover(&remains.process, &remains.out()), Err(RecoverError::NotBegun { .. })));
        // Another one beside it is all that there is.
        let other = remains.process.with_file_name("7-7");
        let mut tracer = Tracer::new(Shape::default());
        tracer.fire(0);
        fs::create_dir(&other).unwrap();
        fs::write(other.join("metadata"), crate::ring_file::metadata()).unwrap();
        fs::write(other.join("0-0.ring"), &tracer.bytes).unwrap();
        let recovered = recover(other.parent().unwrap(), &remains.out()).unwrap();
        assert_eq!((recovered.processes.len(), recovered.is_complete(), recovered.missing()), (1, true, 0));
        assert_eq!(recovered.not_begun, std::slice::from_ref(&remains.process));
    }
}

/// Metadata that was removed is missing, where a ring has events.
#[test]
fn events_without_metadata_are_an_error() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of(&tracer);
    fs::remove_file(remains.process.join("metadata")).unwrap();
    assert!(matches!(recover(&remains.process, &remains.out()), Err(RecoverError::Read(_))));
}

/// Root recovers the rings of any user, who could name any file by a link.
#[test]
fn links_in_place_of_files_are_not_followed() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    for name in ["metadata", "outputs", "0-0.ring"] {
        let remains = Remains::of(&tracer);
        let secret = remains.process.with_file_name("secret");
        let path = remains.process.join(name);
        fs::copy(&path, &secret).unwrap_or_else(|_| fs::write(&secret, "ctf relative/secret\n").map(|()| 0).unwrap());
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        let told = match recover(&remains.process, &remains.out()) {
            Ok(recovered) => recovered.processes[0].notes.join("\n"),
            Err(error) => error.to_string(),
        };
        // A link is no ring at all.
        let expected =
            if name == "0-0.ring" { "there are no ring files in it" } else { "a link, which is not followed" };
        assert!(told.contains(expected) && !told.contains("relative/secret"), "{name}: {told}");
    }
}

#[test]
fn an_output_that_is_not_empty_is_refused() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of(&tracer);
    fs::create_dir(remains.out()).unwrap();
    fs::write(remains.out().join("mine"), "x").unwrap();
    let error = recover(&remains.session(), &remains.out()).unwrap_err();
    assert!(matches!(&error, RecoverError::NotEmpty { found, .. } if found == "mine"), "{error}");
    assert_eq!(fs::read_dir(remains.out()).unwrap().count(), 1);
    let file = remains.out().join("mine");
    let error = recover(&remains.session(), &file).unwrap_err().to_string();
    assert!(error.contains("cannot write"), "{error}");
}

/// Several processes, found from the run directory, from `sessions` and from the session.
#[test]
fn each_process_has_a_directory() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let place = tempfile::tempdir().unwrap();
    let add = |session: &str, process: &str| {
        let directory = place.path().join("sessions").join(session).join("rings").join(process);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("metadata"), crate::ring_file::metadata()).unwrap();
        fs::write(directory.join("0-0.ring"), &tracer.bytes).unwrap();
        directory
    };
    add("a", "1-1");
    let second = add("a", "2-2");
    for (number, from) in ["", "sessions", "sessions/a", "sessions/a/rings"].into_iter().enumerate() {
        let out = place.path().join(format!("out{number}"));
        let recovered = recover(&place.path().join(from), &out).unwrap();
        assert_eq!(recovered.processes.len(), 2);
        for process in ["1-1", "2-2"] {
            assert!(verify(&out.join(process)).unwrap().passed());
        }
    }
    // One that cannot be read leaves the other as it is.
    fs::write(second.join("metadata"), "trace {").unwrap();
    let out = place.path().join("half");
    let recovered = recover(place.path(), &out).unwrap();
    assert_eq!((recovered.processes.len(), recovered.failed.len(), recovered.is_complete()), (1, 1, false));
    assert!(recovered.failed[0].reason.contains("metadata: line 1"), "{}", recovered.failed[0].reason);
    assert!(verify(&out.join("1-1")).unwrap().passed());
    // The same process in two sessions.
    add("b", "1-1");
    let out = place.path().join("both");
    recover(place.path(), &out).unwrap();
    assert!(verify(&out.join("a/1-1")).unwrap().passed() && verify(&out.join("b/1-1")).unwrap().passed());
}

/// The account of a process that runs is that of a snapshot.
#[test]
fn a_running_process_is_read_but_not_changed() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 = own.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().replace('-', "");
    let boot: Vec<u8> = (0..16).map(|n| u8::from_str_radix(&boot[2 * n..2 * n + 2], 16).unwrap()).collect();
    tracer.put(1024, &std::process::id().to_le_bytes());
    tracer.put_number(1032, start);
    tracer.put(1040, &boot);
    tracer.put_number(1056, std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/pid").unwrap()));
    let remains = Remains::of(&tracer);
    let text = crate::ring_file::metadata().replace("4242", &std::process::id().to_string());
    fs::write(remains.process.join("metadata"), text).unwrap();
    let process = taken(&remains, &[0]);
    assert!(process.notes[0].contains("is running"), "{process:#?}");
    assert!(process.snapshot && !process.complete, "{process:#?}");
    let report = verify(&remains.out()).unwrap();
    assert!(report.passed() && report.snapshots() == 1, "{report:#?}");
}

/// What is wrong with a ring leaves the others as they are; where it is the only one, it is the error.
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

/// Recovers a ring that was damaged at one place; the damage is reported, and the result is consistent.
fn patched(tracer: &Tracer, message: &str) -> RecoveredProcess {
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
    // What the last packet had is known from the counter alone, whether it was closed or not.
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
    // A packet was closed when its stream had lost more than the counter says.
    (0..50).for_each(|_| tracer.fire(60));
    tracer.drain(Consumer::Keeps);
    (0..10).for_each(|_| tracer.fire(60));
    assert!(tracer.number(336) > 1);
    tracer.put_number(336, 1);
    assert_eq!(patched(&tracer, " losses, and its counter 1").torn_places, 0);
}

/// Metadata that a tracer did not write, of packets that are laid out in another way.
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

/// Only the output is left: its packets end a bit before where the metadata has their first event.
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

#[test]
fn two_rings_of_one_stream_are_not_mixed() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of_rings(&[("0-0.ring", &tracer), ("0-1.ring", &tracer)]);
    let process = taken(&remains, &[0]);
    assert!(process.notes[0].contains("another ring has the same streams"), "{process:#?}");
}

#[test]
fn a_directory_of_rings_is_not_a_ctf_trace() {
    let tracer = Tracer::new(Shape::default());
    let remains = Remains::of(&tracer);
    for path in [remains.session(), remains.process.clone()] {
        let error = tracepoint_reader::Trace::open(&path).unwrap_err().to_string();
        assert!(error.contains("`tracectl recover "), "{error}");
    }
}

/// A reader that comes too early finds no books.
#[test]
fn the_account_is_written_last() {
    let mut tracer = Tracer::new(Shape::default());
    tracer.fire(0);
    let remains = Remains::of(&tracer);
    let account = remains.out().join(".account");
    let mut calls = 0;
    let seen = |path: &Path| path.exists();
    recover_with(&remains.process, &remains.out(), |progress| {
        calls += 1;
        assert!(progress.done <= progress.total && progress.process == 0 && progress.processes == 1);
        assert!(progress.done == progress.total || !seen(&account));
    })
    .unwrap();
    assert!(calls > 2 && seen(&account.join("account.json")));
    assert_eq!(fs::read_dir(account).unwrap().count(), 1, "nothing is left over");
}
