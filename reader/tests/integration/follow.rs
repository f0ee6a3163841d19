//! A trace is followed while rings still hold a part of it: no event is shown before an older one, regardless of how late that is written.

use crate::ring_file::{Consumer, Shape, Tracer, metadata};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_reader::metadata::with_checksum;
use tracepoint_reader::{Follow, Item, PollResult};

/// Time limit for conditions that normally become true quickly.
const DEADLINE: Duration = Duration::from_secs(60);

/// A run directory with the rings of this process, and the output directory of its sink.
struct Place {
    directory: TempDir,
    rings: PathBuf,
    trace: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let rings = directory.path().join("run/sessions/shop/rings/4242-777");
        let trace = directory.path().canonicalize().unwrap().join("trace");
        for made in [&rings, &trace] {
            fs::create_dir_all(made).unwrap();
            fs::write(made.join("metadata"), metadata()).unwrap();
        }
        fs::write(rings.join("outputs"), format!("ctf {}\n", trace.display())).unwrap();
        Self { directory, rings, trace }
    }

    /// Writes the ring and the files of a thread in their current state. A sink writes before the packet is released.
    fn put(&self, tracer: &Tracer) {
        let instance = tracer.shape.instance;
        if !tracer.output(0).is_empty() {
            fs::write(self.trace.join(format!("channel0_{instance}")), tracer.output(0)).unwrap();
        }
        let ring = self.rings.join(format!("0-{instance}.ring"));
        fs::write(ring.with_extension("new"), &tracer.bytes).unwrap();
        fs::rename(ring.with_extension("new"), ring).unwrap();
    }

    fn follow(&self) -> Follow {
        Follow::open(std::slice::from_ref(&self.trace), i64::MIN)
            .unwrap()
            .run_directory(&self.directory.path().join("run"))
    }
}

/// A thread of this process.
fn tracer(instance: u64) -> Tracer {
    let mut tracer = Tracer::new(Shape { instance, ..Shape::default() });
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: u64 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().replace('-', "");
    let boot: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&boot[2 * at..2 * at + 2], 16).unwrap()).collect();
    tracer.put(1024, &std::process::id().to_le_bytes());
    tracer.put(1032, &ticks.to_le_bytes());
    tracer.put(1040, &boot);
    tracer.put(1056, &fs::metadata("/proc/self/ns/pid").unwrap().ino().to_le_bytes());
    tracer
}

/// The events that arrive until `time` has passed without one, or the trace has ended.
fn events(follow: &mut Follow, time: Duration) -> Vec<i64> {
    let (mut times, mut moved) = (Vec::new(), Instant::now());
    while moved.elapsed() < time {
        match follow.poll().unwrap() {
            PollResult::Item(Item::Event(event)) => times.push(event.time_ns),
            PollResult::Item(item) => panic!("{item:?}"),
            PollResult::Ended => break,
            _ => {
                sleep(Duration::from_millis(10));
                continue;
            }
        }
        moved = Instant::now();
    }
    times
}

/// Writes an account, with which a trace ends.
fn end(directory: &Path) {
    fs::create_dir_all(directory.join(".account")).unwrap();
    fs::write(directory.join(".account/account.json"), "{}").unwrap();
}

#[test]
fn events_in_rings_hold_back_later_ones() {
    let place = Place::new();
    let (mut slow, mut fast) = (tracer(0), tracer(2));
    // One thread's packet stays open, or closed in its ring, while the other's are written.
    (0..3).for_each(|_| slow.fire(8));
    for _ in 0..60 {
        fast.fire(8);
        fast.flush();
        fast.drain(Consumer::Keeps);
    }
    place.put(&slow);
    place.put(&fast);
    let mut follow = place.follow();
    // Longer than events wait if the rings are not available.
    let mut shown = events(&mut follow, Duration::from_millis(2500));
    assert!(shown.len() < 10, "{} events", shown.len());
    slow.flush();
    place.put(&slow);
    shown.extend(events(&mut follow, Duration::from_millis(500)));
    assert!(shown.len() < 10, "{} events", shown.len());
    slow.drain(Consumer::Keeps);
    place.put(&slow);
    let deadline = Instant::now() + DEADLINE;
    while shown.len() < 63 && Instant::now() < deadline {
        shown.extend(events(&mut follow, Duration::from_millis(100)));
    }
    assert_eq!((shown.len(), shown.is_sorted(), follow.late()), (63, true, 0));
    // The session ends.
    fs::remove_dir_all(&place.rings).unwrap();
    end(&place.trace);
    assert!(events(&mut follow, DEADLINE).is_empty());
    assert!(matches!(follow.poll().unwrap(), PollResult::Ended));
}

#[test]
fn a_stream_that_appears_later_is_waited_for() {
    let place = Place::new();
    let (mut early, mut late) = (tracer(0), tracer(2));
    (0..3).for_each(|_| early.fire(8));
    for _ in 0..5 {
        late.fire(8);
        late.flush();
        late.drain(Consumer::Keeps);
    }
    place.put(&late);
    // The rings are not available.
    let mut follow = Follow::open(std::slice::from_ref(&place.trace), i64::MIN).unwrap();
    assert!(matches!(follow.poll().unwrap(), PollResult::Wait), "the other thread has written nothing yet");
    early.flush();
    early.drain(Consumer::Keeps);
    place.put(&early);
    end(&place.trace);
    let shown = events(&mut follow, DEADLINE);
    assert_eq!((shown.len(), shown.is_sorted(), follow.late()), (8, true, 0));
}

#[test]
fn a_trace_does_not_end_between_two_chunks() {
    let (directory, metadata) = (tempfile::tempdir().unwrap(), metadata());
    let chunk = |number: u32, metadata: &str, packets: &[u8]| {
        let chunk = directory.path().join(format!("chunk-{number:06}"));
        fs::create_dir_all(&chunk).unwrap();
        fs::write(chunk.join("metadata"), metadata).unwrap();
        fs::write(chunk.join("channel0_0"), packets).unwrap();
        chunk
    };
    let mut tracer = tracer(0);
    let mut packets = |events| {
        let before = tracer.output(0).len();
        (0..events).for_each(|_| tracer.fire(8));
        tracer.flush();
        tracer.drain(Consumer::Keeps);
        tracer.output(0)[before..].to_vec()
    };
    // The first chunk has its account when the directories are searched, and the next one is created after that.
    end(&chunk(1, &metadata, &packets(3)));
    let mut follow = Follow::open(&[directory.path().to_owned()], i64::MIN).unwrap();
    let wait = Duration::from_millis(300);
    let mut polled = follow.poll().unwrap();
    assert!(!matches!(polled, PollResult::Ended));
    // Its metadata is being written.
    let packets = packets(5);
    chunk(2, &metadata[..metadata.len() - 4], &packets);
    let mut shown = usize::from(matches!(polled, PollResult::Item(_))) + events(&mut follow, wait).len();
    polled = follow.poll().unwrap();
    assert!(matches!(polled, PollResult::Wait), "{polled:?} after {shown} events");
    end(&chunk(2, &metadata, &packets));
    shown += events(&mut follow, DEADLINE).len();
    assert_eq!((shown, follow.late()), (8, 0));
    assert!(matches!(follow.poll().unwrap(), PollResult::Ended));
}

/// A rotation moves a trace into its first chunk: also between a look and the reading of a packet that it found.
#[test]
fn packets_of_a_trace_that_moves_are_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    fs::create_dir(&trace).unwrap();
    fs::write(trace.join("metadata"), metadata()).unwrap();
    let mut tracer = tracer(0);
    for _ in 0..4 {
        (0..3).for_each(|_| tracer.fire(8));
        tracer.flush();
        tracer.drain(Consumer::Keeps);
    }
    fs::write(trace.join("channel0_0"), tracer.output(0)).unwrap();
    end(&trace);
    let mut follow = Follow::open(std::slice::from_ref(&trace), i64::MIN).unwrap();
    let mut next = || loop {
        match follow.poll().unwrap() {
            PollResult::Item(item) => break item,
            PollResult::Ended => panic!("it ends too early"),
            _ => sleep(Duration::from_millis(1)),
        }
    };
    assert!(matches!(next(), Item::Event(_)));
    let chunk = trace.join("chunk-000001");
    fs::rename(&trace, directory.path().join("moved")).unwrap();
    fs::create_dir(&trace).unwrap();
    fs::rename(directory.path().join("moved"), &chunk).unwrap();
    for _ in 0..5 {
        assert!(matches!(next(), Item::Event(_)));
    }
    // A packet that is gone is not waited for.
    fs::rename(chunk.join("channel0_0"), directory.path().join("gone")).unwrap();
    let damage = loop {
        if let Item::Damage(damage) = next() {
            break damage.to_string();
        }
    };
    assert!(damage.contains("chunk-000001/channel0_0") && damage.contains("a packet cannot be read"), "{damage}");
}

#[test]
fn metadata_that_stays_unreadable_is_reported_once_and_not_waited_for() {
    let (directory, metadata) = (tempfile::tempdir().unwrap(), metadata());
    let (mut tracer, mut packets) = (tracer(0), Vec::new());
    for number in 1..=3 {
        let before = tracer.output(0).len();
        tracer.fire(8);
        tracer.flush();
        tracer.drain(Consumer::Keeps);
        let chunk = directory.path().join(format!("chunk-{number:06}"));
        fs::create_dir_all(&chunk).unwrap();
        fs::write(chunk.join("metadata"), &metadata).unwrap();
        packets = tracer.output(0)[before..].to_vec();
        if number < 3 {
            fs::write(chunk.join("channel0_0"), &packets).unwrap();
        }
        end(&chunk);
    }
    let mut follow = Follow::open(&[directory.path().to_owned()], i64::MIN).unwrap();
    let mut events = usize::from(matches!(follow.poll().unwrap(), PollResult::Item(Item::Event(_))));
    // The third chunk gets its event later, which the metadata read so far describes. The fourth is unreadable.
    let [torn, unread] = [3, 4].map(|number| directory.path().join(format!("chunk-{number:06}/metadata")));
    fs::write(&torn, format!("{metadata}event {{")).unwrap();
    fs::write(torn.with_file_name("channel0_0"), &packets).unwrap();
    fs::create_dir(unread.parent().unwrap()).unwrap();
    fs::write(&unread, &metadata[..metadata.len() - 4]).unwrap();
    end(unread.parent().unwrap());
    let (mut damaged, began) = (Vec::new(), Instant::now());
    loop {
        match follow.poll().unwrap() {
            PollResult::Item(Item::Event(_)) => events += 1,
            PollResult::Item(Item::Damage(damage)) => {
                assert!(damage.reason.starts_with("the metadata cannot be read"), "{damage}");
                damaged.push(damage.file);
            }
            PollResult::Ended => break,
            polled => assert!(began.elapsed() < DEADLINE, "{polled:?} after {events} events and {damaged:?}"),
        }
        sleep(Duration::from_millis(10));
    }
    damaged.sort();
    assert_eq!((events, damaged), (3, vec![torn, unread]));
}

#[test]
fn metadata_that_has_changed_is_told_once_beside_the_events() {
    let directory = tempfile::tempdir().unwrap();
    let mut tracer = tracer(0);
    tracer.fire(8);
    tracer.flush();
    tracer.drain(Consumer::Keeps);
    for number in 1..=2 {
        let chunk = directory.path().join(format!("chunk-{number:06}"));
        fs::create_dir_all(&chunk).unwrap();
        let text = with_checksum(metadata());
        // One bit, in a comment.
        let text = if number == 2 { text.replacen("CTF 1.8 */", "CTF 1.8 */ ", 1) } else { text };
        fs::write(chunk.join("metadata"), text).unwrap();
        end(&chunk);
    }
    let changed = directory.path().join("chunk-000002/metadata");
    fs::write(changed.with_file_name("channel0_0"), tracer.output(0)).unwrap();
    let mut follow = Follow::open(&[directory.path().to_owned()], i64::MIN).unwrap();
    let (mut events, mut told, began) = (0, Vec::new(), Instant::now());
    loop {
        match follow.poll().unwrap() {
            PollResult::Item(Item::Event(_)) => events += 1,
            PollResult::Ended => break,
            polled => assert!(began.elapsed() < DEADLINE, "{polled:?} after {events} events"),
        }
        told.extend(follow.take_metadata_damage());
        sleep(Duration::from_millis(1));
    }
    told.extend(follow.take_metadata_damage());
    assert_eq!(events, 1);
    assert_eq!(told.iter().map(|damage| &damage.file).collect::<Vec<_>>(), [&changed], "{told:?}");
    assert!(told[0].reason.starts_with("the metadata is damaged: its bytes have changed"), "{told:?}");
}
