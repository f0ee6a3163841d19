//! Several threads find the same in a trace as one: events, losses, damage, and the results of `verify`. So does a visitor of packets.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::hand::{PREAMBLE, Packet, UUID, one_event, stream, trace};
use crate::seed;
use std::ops::ControlFlow;
use std::sync::Arc;
use tempfile::TempDir;
use tracepoint_reader::account::Account;
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_reader::internal::sealed;
use tracepoint_reader::{
    Damage, EventView, Item, Loss, Packet as Header, Parallelism, Stream, Trace, TraceVisitor, Visitor, verify_with,
};

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bytes(&mut self, limit: u64) -> Vec<u8> {
        (0..self.below(limit)).map(|_| self.next() as u8 | 1).collect()
    }
}

/// A stream whose events have a context.
const WITH_CONTEXT: &str = "event.context := struct { string cpu; u8 core; };\n}";

/// Streams 0 and 1. Event 3 has bit fields, so that the general decoder is used; event 4 has its own context.
fn metadata() -> String {
    let mut text =
        format!("{PREAMBLE}{}{}", stream(0), stream(1).replacen("\n};\n", &format!("\n  {WITH_CONTEXT};\n"), 1));
    let events = [
        "u32 small; integer { size = 64; align = 8; signed = true; } large; integer { size = 16; align = 8; byte_order = be; } port;",
        "string path; floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f; u32 _n; integer { size = 8; align = 8; encoding = UTF8; } s[_n];",
        "u8 fixed[3]; u32 _l; u16 words[_l]; floating_point { exp_dig = 11; mant_dig = 53; align = 8; } d; u32 _m; u8 raw[_m];",
        "integer { size = 3; align = 1; } a; integer { size = 13; align = 1; } b; enum : u8 { On = 1, Off = 2 } e;",
        "integer { size = 24; align = 8; signed = true; byte_order = be; } odd;",
    ];
    for stream in 0..2 {
        for (id, fields) in events.iter().enumerate() {
            let context = if id == 4 { "context := struct { u16 vtid; };" } else { "" };
            let event = format!(
                "name = \"p:e{id}\"; id = {id}; stream_id = {stream}; {context} fields := struct {{ {fields} }};"
            );
            writeln!(text, "event {{ {event} }};").unwrap();
        }
    }
    text
}

/// The bytes of an event after its header.
fn event(random: &mut Random, stream: u32, id: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let counted = |bytes: &mut Vec<u8>, data: &[u8], size: usize| {
        bytes.extend((data.len() as u32 / size as u32).to_le_bytes());
        bytes.extend(&data[..data.len() / size * size]);
    };
    if stream == 1 {
        bytes.extend(random.bytes(5));
        bytes.extend([0, 3]);
    }
    match id {
        0 => (0..14).for_each(|_| bytes.push(random.next() as u8)),
        1 => {
            bytes.extend(random.bytes(20));
            bytes.extend([0, 0, 0, 0x80, 0x3f]);
            let text = random.bytes(10);
            counted(&mut bytes, &text, 1);
        }
        2 => {
            bytes.extend([1, 2, 3]);
            let words = random.bytes(10);
            counted(&mut bytes, &words, 2);
            bytes.extend(f64::from(random.below(100) as u32).to_le_bytes());
            let raw = random.bytes(10);
            counted(&mut bytes, &raw, 1);
        }
        3 => (0..3).for_each(|_| bytes.push(random.next() as u8)),
        _ => (0..5).for_each(|_| bytes.push(random.next() as u8)),
    }
    bytes
}

/// A trace of some streams with many packets, and its number of events. Some packets are missing, and some count losses.
fn random_trace(random: &mut Random) -> (TempDir, usize) {
    let seals = random.below(3) > 0;
    let (mut files, mut written) = (Vec::new(), 0);
    for instance in 0..=random.below(3) {
        let stream = random.below(2) as u32;
        let (mut time, mut number, mut discarded, mut before) = (random.below(1 << 50), 0, 0, 0);
        let mut packets = Vec::new();
        for _ in 0..random.below(25) {
            let count = random.below(12);
            let events: Vec<_> = (0..count)
                .map(|_| {
                    time += random.below(1000);
                    let id = random.below(5) as u16;
                    (id, time & ((1 << 48) - 1), event(random, stream, id))
                })
                .collect();
            let records: Vec<_> = events.iter().map(|(id, time, bytes)| (*id, *time, bytes.as_slice())).collect();
            number += 1 + random.below(8) / 7;
            discarded += random.below(8) / 7;
            let (begin, end) = (time.saturating_sub(12_000), time);
            let padding = random.below(3) as usize * 8;
            let packet =
                Packet { stream, instance, begin, end, number, discarded, before, padding, ..Packet::of(&records) };
            before += count;
            written += count as usize;
            packets.push(if seals { sealed(packet.bytes()) } else { packet.bytes() });
        }
        files.push((format!("s_{instance}"), packets));
    }
    let files: Vec<_> = files.iter().map(|(name, packets)| (name.as_str(), packets.as_slice())).collect();
    let directory = trace(&metadata(), &files);
    let mut account = Account::new(UUID, "name", 4242);
    account.complete = true;
    fs::create_dir(directory.path().join(".account")).unwrap();
    fs::write(directory.path().join(".account/account.json"), account.to_json()).unwrap();
    (directory, written)
}

/// Changes, cuts or extends files.
fn damage(random: &mut Random, directory: &Path) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let is_stream = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with("s_"));
        if !is_stream || random.below(2) == 0 {
            continue;
        }
        let mut bytes = fs::read(&entry).unwrap();
        for _ in 0..=random.below(2) {
            let length = bytes.len() as u64;
            match random.below(4) {
                0 => bytes.truncate(random.below(length + 1) as usize),
                1 => bytes.extend(random.bytes(200)),
                _ if length > 0 => {
                    let at = random.below(length) as usize;
                    bytes[at] ^= 1 << random.below(8);
                }
                _ => {}
            }
        }
        fs::write(entry, bytes).unwrap();
    }
}

fn line(event: &EventView<'_>) -> String {
    let values: Vec<_> = (0..16).map(|index| event.value(index)).collect();
    let stream = event.stream();
    let place = (stream.class.id, stream.instance, event.class().name.as_str());
    format!("{} {} {place:?} {:?} {values:?}", event.time_ns(), event.cycles(), event.tid())
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Visitor for Lines {
    fn event(&mut self, event: &EventView<'_>) {
        self.0.push(line(event));
    }
}

/// The findings of one thread that decodes everything: events, losses and damage, each sorted, and the number of packets without a checksum.
type Found = (Vec<String>, Vec<String>, Vec<String>, u64);

fn sorted(mut found: Found) -> Found {
    for lines in [&mut found.0, &mut found.1, &mut found.2] {
        lines.sort();
    }
    found
}

fn loss(loss: &Loss) -> String {
    format!("{:?} {:?} {} {}", loss.stream.instance, loss.kind, loss.from_ns, loss.to_ns)
}

fn by_items(trace: &Trace) -> Found {
    let mut found = Found::default();
    let mut items = trace.items();
    for item in items.by_ref() {
        match item {
            Item::Event(event) => found.0.push(line(&EventView::from(&event))),
            Item::Loss(one) => found.1.push(loss(&one)),
            Item::Damage(damage) => found.2.push(damage.to_string()),
            other => panic!("{other:?}"),
        }
    }
    found.3 = items.unchecked();
    sorted(found)
}

fn by_visitors(trace: &Trace, parallelism: Parallelism) -> Found {
    let start = |threads| (0..threads).map(|_| Lines::default()).collect();
    let mut progress = (0, 0);
    let (visitors, seen) = trace.visit((None, None), parallelism, start, &mut |done, all| progress = (done, all));
    assert!(progress.0 <= progress.1);
    let damage = seen.damage.iter().map(ToString::to_string).collect();
    let events = visitors.into_iter().flat_map(|lines| lines.0).collect();
    sorted((events, seen.losses.iter().map(loss).collect(), damage, seen.unchecked))
}

/// The findings of a visitor of packets, and the begin times of the packets.
#[derive(Default)]
struct Packets {
    found: Found,
    begins: Vec<i64>,
    stream: Option<(u64, Option<u64>)>,
}

impl TraceVisitor for Packets {
    fn loss(&mut self, one: &Loss) {
        self.found.1.push(loss(one));
    }

    fn packet(&mut self, stream: &Arc<Stream>, packet: &Header) -> ControlFlow<()> {
        self.begins.extend(packet.begin.map(|begin| stream.nanoseconds(begin)));
        self.stream = Some((stream.class.id, stream.instance));
        ControlFlow::Continue(())
    }

    fn event(&mut self, event: &EventView<'_>) {
        assert_eq!(Some((event.stream().class.id, event.stream().instance)), self.stream);
        let has_array = event.class().name == "p:e2";
        assert!(!has_array || event.decoded().is_some(), "an array cannot be told otherwise");
        self.found.0.push(line(event));
    }

    fn damage(&mut self, damage: &Damage) {
        self.found.2.push(damage.to_string());
    }
}

fn by_packets(trace: &Trace) -> (Found, Vec<i64>) {
    let (mut packets, mut progress) = (Packets::default(), (0, 0));
    packets.found.3 = trace.visit_packets(&mut packets, &mut |done, all| progress = (done, all));
    assert!(progress.0 <= progress.1);
    (sorted(packets.found), packets.begins)
}

/// Numbers of threads, and bytes per part.
const DIVISIONS: [(usize, u64); 4] = [(1, 0), (1, 1), (3, 700), (4, 5000)];

fn assert_equal(found: &Found, expected: &Found, what: &str) {
    for (found, expected) in [(&found.0, &expected.0), (&found.1, &expected.1), (&found.2, &expected.2)] {
        let missing: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
        let added: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
        assert!(found == expected, "{what}: missing {missing:#?}, added {added:#?}");
    }
    assert_eq!(found.3, expected.3, "{what}");
}

fn compare(path: &Path, what: &str) -> Found {
    let trace = Trace::open(path).unwrap();
    let expected = by_items(&trace);
    let (found, begins) = by_packets(&trace);
    assert_equal(&found, &expected, &format!("{what}, packets"));
    // Times in a damaged stream may go backwards.
    assert!(!expected.2.is_empty() || begins.is_sorted(), "{what}: {begins:?}");
    let report = verify_with(path, Parallelism::new(1, 0), &mut |_, _| {}).unwrap();
    for (threads, part) in DIVISIONS {
        let parallelism = Parallelism::new(threads, part);
        let found = by_visitors(&trace, parallelism);
        assert_equal(&found, &expected, &format!("{what}, {threads} threads, {part} bytes"));
        let verified = verify_with(path, parallelism, &mut |_, _| {}).unwrap();
        let checks = verified.checks.iter().zip(&report.checks);
        let different: Vec<_> = checks.filter(|(left, right)| left != right).collect();
        assert!(verified == report, "{what}, {threads} threads, {part} bytes: {different:#?}");
    }
    expected
}

#[test]
fn several_threads_find_what_one_finds() {
    let (mut events, mut damaged, mut files) = (0, 0, 0);
    for number in seed::campaign(48) {
        let random = &mut Random(number);
        let (directory, written) = random_trace(random);
        let found = compare(directory.path(), &format!("seed {number}")).0.len();
        assert_eq!(found, written, "seed {number}");
        events += found;
        let place = tempfile::tempdir().unwrap();
        let dt = place.path().join("trace.dt");
        if convert(directory.path(), &dt, ConvertOptions::default(), |_| {}).is_ok() {
            files += usize::from(compare(&dt, &format!("seed {number}, dt")).0.len() > 100);
            let mut bytes = fs::read(&dt).unwrap();
            // Within the slots, so that the file can be opened.
            let at = 20 + random.below(bytes.len() as u64 / 3) as usize;
            bytes[at] ^= 4;
            fs::write(&dt, bytes).unwrap();
            if Trace::open(&dt).is_ok() {
                compare(&dt, &format!("seed {number}, damaged dt"));
            }
        }
        damage(random, directory.path());
        damaged += usize::from(!compare(directory.path(), &format!("seed {number}, damaged")).2.is_empty());
    }
    if std::env::var_os("TRACEPOINT_SEED").is_none() {
        assert!(events > 5000 && damaged > 20 && files > 10, "{events} {damaged} {files}");
    }
}

/// They are not clamped to the last time within 64 bits of nanoseconds.
#[test]
fn times_beyond_64_bits_are_damage() {
    for (offset, times, whole) in
        [(i64::MAX - 1500, [1000, 1400, 2000], 2), (i64::MAX - 1500, [2000, 2000, 2000], 0), (i64::MIN, [0, 5, 7], 3)]
    {
        let metadata = one_event("u32 n;").replace("offset = 1700000000000000000", &format!("offset = {offset}"));
        let records = times.map(|time| (0, time, &[7, 0, 0, 0][..]));
        let directory = trace(&metadata, &[("s_0", &[Packet::of(&records).bytes()])]);
        let found = compare(directory.path(), &format!("{offset} {times:?}"));
        assert_eq!((found.0.len(), found.2.len()), (whole, usize::from(whole < 3)), "{found:?}");
        assert!(
            found.2.iter().all(|damage| damage.contains("2000 cycles of its clock, is outside of the years")),
            "{found:?}"
        );
    }
    // Whole seconds before the epoch of the clock, within 64 bits and beyond.
    let metadata = one_event("u32 n;").replace("offset = 17", "offset_s = -9223372037; offset = -17");
    let directory = trace(&metadata, &[("s_0", &[Packet::of(&[(0, 5, &[7, 0, 0, 0][..])]).bytes()])]);
    assert_eq!(compare(directory.path(), "before").0.len(), 0);
}

#[test]
fn packets_outside_the_times_are_left_out() {
    for number in seed::campaign(30) {
        let random = &mut Random(number);
        let (directory, _) = random_trace(random);
        let trace = Trace::open(directory.path()).unwrap();
        let Some((begin, end)) = trace.range() else { continue };
        let middle = begin + (end - begin) / 3;
        let (since, until) = (Some(middle), Some(middle + (end - begin) / 3));
        let is_in = |time: i64| since.is_none_or(|since| time >= since) && until.is_none_or(|until| time <= until);
        let mut expected: Vec<_> = trace
            .items()
            .filter_map(|item| match item {
                Item::Event(event) if is_in(event.time_ns) => Some(line(&EventView::from(&event))),
                _ => None,
            })
            .collect();
        expected.sort();
        for (threads, part) in DIVISIONS {
            let start = |threads| (0..threads).map(|_| Lines::default()).collect();
            let (visitors, _) = trace.visit((since, until), Parallelism::new(threads, part), start, &mut |_, _| {});
            let lines = visitors.into_iter().flat_map(|lines| lines.0);
            let time = |line: &String| line.split(' ').next().unwrap().parse().unwrap();
            let mut found: Vec<_> = lines.filter(|line| is_in(time(line))).collect();
            found.sort();
            assert_eq!(found, expected, "seed {number}, {threads} threads, {part} bytes");
        }
    }
}
