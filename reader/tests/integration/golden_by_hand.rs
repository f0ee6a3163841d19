//! The golden ring files of version 1, read by an independent decoder: it knows the tables of `docs/format-ring.md` and the three events of
//! the files, and nothing of the reader.

use std::fs;
use std::path::{Path, PathBuf};

fn golden(state: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1").join(state)
}

/// The bytes of a file, interpreted by the tables.
struct File(Vec<u8>);

impl File {
    fn of(state: &str, name: &str) -> Self {
        Self(fs::read(golden(state).join(name)).unwrap())
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().unwrap()
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    fn u64s<const N: usize>(&self, at: usize) -> [u64; N] {
        std::array::from_fn(|n| self.u64(at + 8 * n))
    }

    fn text(&self, at: usize) -> &str {
        let len = usize::from(u16::from_le_bytes(self.bytes(at)));
        str::from_utf8(&self.0[at + 2..at + 2 + len]).unwrap()
    }

    /// The slot offsets of a stream; `at` is the offset of its fields for offset, size and number.
    fn places(&self, at: usize) -> Vec<usize> {
        let [offset, size, count] = self.u64s(at).map(|number| number as usize);
        (0..count).map(|place| offset + place * size).collect()
    }
}

const UUID: &[u8; 16] = b"0123456789abcdef";
const HELD: [u64; 3] = [26, 26, 24];

fn check_header(file: &File, instance: u64) {
    assert_eq!(&file.bytes(0), b"tp-ring\n");
    assert_eq!((file.u32(8), file.u32(12)), (1, 4096));
    assert_eq!(file.u64(16), file.0.len() as u64);
    assert_eq!((&file.bytes(24), file.u32(40), file.u32(44)), (UUID, 0, 1), "of the trace, class 0, overwrite");
    assert_eq!(file.u64s(48), [instance, 3, 4096, 128, 0, 1000]);
    assert_eq!(file.u64(144), 0);
    assert_eq!(file.u64(464), 4242);
    assert_eq!((file.u32(1024), file.u64(1032), file.bytes(1040)), (4242, 777, [9; 16]));
    assert_eq!(file.u64(1056), 4_026_531_836);
    let texts = [1088, 2112, 2368, 2624, 3648].map(|at| file.text(at));
    assert_eq!(texts, ["/bin/golden", "host", "golden", "/somewhere/metadata", "channel0"]);
}

/// Fired, recorded, filtered, suppressed, and lost by six reasons; the rest is zero.
fn check_account(file: &File, expected: [[u64; 10]; 3]) {
    for (id, expected) in expected.into_iter().enumerate() {
        let entry: [u64; 16] = file.u64s(4096 + 128 * id);
        assert_eq!((&entry[..10], &entry[10..]), (&expected[..], &[0; 6][..]), "event {id}");
    }
}

/// An event: its time, and its text after its name.
type Event = (u64, String);

/// The records of a packet, from the end of its header to the end of its content.
fn records(file: &File, place: usize) -> Vec<Event> {
    let end = place + file.u64(place + 48) as usize / 8;
    let mut at = place + 96;
    let mut events = Vec::new();
    while at < end {
        let word = file.u64(at);
        at += 8;
        let text = match word & 0xFFFF {
            1 => {
                at += 8;
                format!("golden:number {{ n = {} }}", file.u64(at - 8))
            }
            2 => {
                let words: Vec<u8> = file.0[at + 4..].iter().copied().take_while(|byte| *byte != 0).collect();
                let n = file.u32(at);
                at += 4 + words.len() + 1;
                format!("golden:text {{ n = {n}, words = \"{}\" }}", String::from_utf8(words).unwrap())
            }
            id => panic!("event {id} at byte {at}"),
        };
        events.push((word >> 16, text));
    }
    assert_eq!(at, end, "records fill the content");
    events
}

/// All events of the main stream: the places in the order of their packets.
fn events(file: &File, closed: u64) -> Vec<Event> {
    let mut places = file.places(96);
    places.sort_by_key(|place| file.u64(place + 64));
    let mut events = Vec::new();
    let mut before = 26;
    for (index, place) in places.into_iter().enumerate() {
        let number = 1 + index as u64;
        assert_eq!((file.u32(place), &file.bytes(place + 4)), (0xC1FC_1FC1, UUID));
        assert_eq!((file.u32(place + 20), file.u64(place + 24)), (0, 0), "stream 0 of class 0");
        assert_eq!((file.u64(place + 64), file.u32(place + 80), file.u64(place + 88)), (number + 1, 77, before));
        let records = records(file, place);
        let [begin, end, content, size, _, discarded] = file.u64s(place + 32);
        assert_eq!(begin, records[0].0);
        if number < closed {
            let last = number == 3;
            assert_eq!((end, size, discarded), (records.last().unwrap().0, content, u64::from(last)));
        } else {
            assert_eq!((size, discarded), (512 * 8, 0), "it is open");
        }
        assert_eq!(records.len() as u64, HELD[index]);
        before += records.len() as u64;
        events.extend(records);
    }
    events
}

/// The events that `golden.rs` expects the reader to report for the same files.
fn expected(state: &str) -> Vec<Event> {
    let text = fs::read_to_string(golden(state).with_extension("txt")).unwrap();
    let event = |line: &str| {
        let time: u64 = line.strip_prefix("[00:00:00.")?.get(..9)?.parse().ok()?;
        let (_, rest) = line.split_once(" host:golden:(4242) ")?;
        let (name, rest) = rest.split_once(": ")?;
        let (_, fields) = rest.split_once(" }, ")?;
        Some((time, format!("{name} {fields}")))
    };
    text.lines().filter_map(event).collect()
}

#[test]
fn the_ring_of_a_killed_process() {
    let file = File::of("killed", "0-0.ring");
    check_header(&file, 0);
    assert_eq!((file.u32(256), file.u32(260)), (1, 77), "a thread owns it");
    assert_eq!(file.u64s(320), [102, 3, 1, 0, 0], "three packets are closed, the fourth is open");
    assert_eq!(file.u64s(384), [0; 5]);
    assert_eq!(file.u64s(448), [0, 0], "nobody took any");
    check_account(
        &file,
        [[1, 0, 0, 0, 0, 1, 0, 0, 0, 0], [100, 100, 0, 0, 0, 0, 0, 0, 0, 0], [2, 2, 0, 0, 0, 0, 0, 0, 0, 0]],
    );
    assert!(file.places(120).iter().all(|place| file.u32(*place) == 0), "no nested event");
    let events = events(&file, 3);
    assert_eq!(events, expected("killed"));
    assert_eq!(events.last().unwrap().1, "golden:text { n = 8, words = \"\" }");
}

#[test]
fn the_ring_of_a_session_that_ended() {
    let file = File::of("clean", "0-0.ring");
    check_header(&file, 0);
    assert_eq!((file.u32(256), file.u32(260)), (2, 77), "its thread has ended");
    assert_eq!(file.u64s(320), [102, 4, 1, 0, 0]);
    assert_eq!(file.u64s(448), [4, 0], "all were taken");
    check_account(
        &file,
        [[1, 0, 0, 0, 0, 1, 0, 0, 0, 0], [100, 100, 0, 0, 0, 0, 0, 0, 0, 0], [2, 2, 0, 0, 0, 0, 0, 0, 0, 0]],
    );
    assert_eq!(events(&file, 4), expected("clean"));
}

#[test]
fn the_counters_of_threads_without_a_ring() {
    for state in ["killed", "clean"] {
        let file = File::of(state, "0-orphans.ring");
        check_header(&file, 4_294_967_295);
        assert!(file.places(96).is_empty() && file.places(120).is_empty());
        assert_eq!((file.u32(256), file.u64s(320)), (0, [0, 0, 1, 0, 0]));
        check_account(&file, [[0; 10], [1, 0, 0, 0, 0, 0, 1, 0, 0, 0], [0; 10]]);
    }
}
