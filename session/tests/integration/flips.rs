//! A flipped bit in a kept packet is detected, wherever the packet is, and reported with its place.

use crate::common::{Outcome, memory_place, place, process_dirs};
use crate::seed;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_reader::text::{TextOptions, TextWriter};
use tracepoint_reader::{Damage, Item, Metadata, Packets, Trace, recover, stream_files, verify};
use tracepoint_ring::channel::CHECKSUM;
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "flips";
    pub number(n: u64) { n: u64 = n }
    pub text(words: &str) { words: str = words }
}

const EVENTS: u64 = 600;

/// A random number generator: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        for shift in [13, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        (self.0 % end as u64) as usize
    }
}

fn session() -> SessionBuilder {
    Session::builder("flips").events("flips:*").channel(Channel::discard(16 << 10).packets(16).spares(1))
}

fn fire() {
    for n in 0..EVENTS / 2 {
        tracepoint::trace!(number(n));
        tracepoint::trace!(text("some words"));
        if n % 100 == 0 {
            // The drain keeps up.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// Returns the number of readable events of a trace, and the damage.
fn view(path: &Path) -> Result<(u64, Vec<Damage>), Box<dyn std::error::Error>> {
    let (mut events, mut damage) = (0, Vec::new());
    for item in Trace::open(path)?.items() {
        match item {
            Item::Event(_) => events += 1,
            Item::Damage(found) => damage.push(found),
            _ => {}
        }
    }
    Ok((events, damage))
}

#[test]
fn a_flip_in_a_stream_file_costs_its_packet_and_is_reported() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let recording = session().sink(CtfSink::create(&dir)?).start()?;
    fire();
    recording.stop()?;
    let metadata = Metadata::open(&dir.join("metadata"))?;
    let report = verify(&dir)?;
    assert!(report.passed() && report.unchecked == 0, "{report:?}");
    let (all, damage) = view(&dir)?;
    assert_eq!((all, damage.len()), (EVENTS, 0));
    // The packets of each file, and the number of events in each.
    let mut packets: Vec<(PathBuf, Range<u64>, u64)> = Vec::new();
    for path in stream_files(&dir)? {
        let found = Packets::open(&metadata, &path)?.collect::<Result<Vec<_>, _>>()?;
        for (index, packet) in found.iter().enumerate() {
            assert_eq!(packet.has_checksum, Some(true));
            let before = |packet: &tracepoint_reader::Packet| packet.events_before.unwrap_or(0);
            let events = found.get(index + 1).map_or(0, |next| before(next) - before(packet));
            packets.push((path.clone(), packet.offset..packet.offset + packet.size(), events));
        }
    }
    assert!(packets.len() > 8, "{packets:?}");
    let mut contents: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for path in stream_files(&dir)? {
        contents.insert(path.clone(), fs::read(&path)?);
    }
    let mut random = Random(seed::seed() | 1);
    for round in 0..1000 {
        // In proportion to the sizes of the packets, like real bit flips, and sometimes in a header.
        let (path, range, events) = &packets[random.below(packets.len())];
        let length = if round % 4 == 0 { 96 } else { (range.end - range.start) as usize };
        let bit = range.start as usize * 8 + random.below(length * 8);
        let good = &contents[path];
        let mut bad = good.clone();
        flip(&mut bad, bit);
        fs::write(path, &bad)?;
        let what = format!("bit {bit} of {}", path.display());
        let (shown, damage) = view(&dir)?;
        let [damage] = damage.as_slice() else { return Err(format!("{what}: {damage:?}").into()) };
        // A contradiction in a header is detected after it.
        assert!(
            damage.file == *path && (range.start..=range.end).contains(&damage.offset),
            "{what} in {range:?}: {damage}"
        );
        assert_eq!(shown, EVENTS - events, "{what}: the other packets are shown: {damage}");
        let report = verify(&dir)?;
        let is_reported = report.failures().any(|check| {
            check.rule == 'Q' && check.subject == path.display().to_string() && check.left.contains(&damage.reason)
        });
        assert!(is_reported, "{what}: {report:?}");
        fs::write(path, good)?;
    }
    Ok(())
}

/// Returns a trace as text.
fn text_of(path: &Path) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let (mut text, mut writer) = (Vec::new(), TextWriter::new(TextOptions::default()));
    for item in Trace::open(path)?.items() {
        writer.write_item(&mut text, &item)?;
    }
    Ok(text)
}

#[test]
fn a_flip_in_the_metadata_that_changes_what_is_shown_is_found() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let recording = Session::builder("flips").events("flips:number").sink(CtfSink::create(&dir)?).start()?;
    tracepoint::trace!(number(1));
    recording.enable("flips:text")?;
    tracepoint::trace!(text("some words"));
    recording.stop()?;
    let file = dir.join("metadata");
    let good = fs::read(&file)?;
    assert!(Metadata::open(&file)?.is_checked() && verify(&dir)?.passed());
    let shown = text_of(&dir)?;
    let mut random = Random(seed::seed() | 1);
    let (mut found, mut parsed) = (0, 0);
    for _ in 0..500 {
        let bit = random.below(good.len() * 8);
        let mut bad = good.clone();
        flip(&mut bad, bit);
        fs::write(&file, &bad)?;
        // Malformed metadata is an error of all verbs.
        let Ok(report) = verify(&dir) else { continue };
        parsed += 1;
        if report.passed() {
            assert_eq!(text_of(&dir)?, shown, "bit {bit} changes what is shown, and is not found");
        } else {
            found += 1;
            let reason = Metadata::open(&file)?.damage().map(str::to_owned).ok_or("no reason")?;
            assert!(report.failures().any(|check| check.rule == 'S' && check.left == reason), "bit {bit}: {report:?}");
        }
    }
    assert!(parsed > 50 && found > parsed * 9 / 10, "{found} of {parsed}");
    // Older traces, and traces of other tracers, have no checksums.
    let text = String::from_utf8(good)?;
    let older: Vec<_> = text.lines().filter(|line| !line.starts_with("/*crc32c ")).collect();
    fs::write(&file, older.join("\n"))?;
    assert!(!Metadata::open(&file)?.is_checked() && verify(&dir)?.passed());
    Ok(())
}

#[test]
fn a_flip_in_a_dt_file_is_reported() -> Outcome {
    own_process!();
    let place = place();
    let path = place.path().join("trace.dt");
    let recording = session().sink(DtSink::create(&path, 64)?).start()?;
    fire();
    recording.stop()?;
    assert_eq!(view(&path)?, (EVENTS, Vec::new()));
    let good = fs::read(&path)?;
    let packets: Vec<Range<usize>> = Trace::open(&path)?
        .dt()
        .ok_or("a dt file")?
        .packets()
        .filter_map(|packet| {
            let bytes = packet.bytes()?;
            // A slot begins with its frame.
            let from = packet.offset() as usize;
            let begin = good.get(from..)?.windows(bytes.len()).position(|found| found == bytes)? + from;
            Some(begin..begin + bytes.len())
        })
        .collect();
    assert!(packets.len() > 8, "{packets:?}");
    let mut random = Random(seed::seed() | 1);
    for _ in 0..200 {
        let range = &packets[random.below(packets.len())];
        let bit = range.start * 8 + random.below(range.len() * 8);
        let mut bad = good.clone();
        flip(&mut bad, bit);
        fs::write(&path, &bad)?;
        let (shown, damage) = view(&path)?;
        let [damage] = damage.as_slice() else { return Err(format!("bit {bit}: {damage:?}").into()) };
        assert!(
            (range.start.saturating_sub(64)..range.end).contains(&(damage.offset as usize)),
            "bit {bit} in {range:?}: {damage}"
        );
        assert!(shown < EVENTS && !verify(&path)?.passed(), "bit {bit}: {damage}");
    }
    Ok(())
}

/// Returns the places of the packets that have left the ring, by the numbers that recovery gives them.
fn taken_packets(ring: &[u8]) -> Vec<(u64, Range<usize>)> {
    let word = |at: usize| u64::from_le_bytes(ring[at..at + 8].try_into().expect("eight bytes"));
    let [offset, size, count] = [96, 104, 112].map(|at| word(at) as usize);
    let places = (0..count).map(|place| offset + place * size);
    places
        .filter(|at| ring[at + CHECKSUM..][..4] != [0; 4])
        .map(|at| (word(at + 64), at..at + word(at + 56) as usize / 8))
        .collect()
}

/// Copies the files that a process would leave in its directory if it were killed now.
fn copy_as_killed(directory: &Path, copy: &Path) -> std::io::Result<()> {
    fs::create_dir(copy)?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let mut bytes = fs::read(entry.path())?;
        if entry.path().extension().is_some_and(|extension| extension == "ring") {
            // Another process, which is no longer running: start times that differ by one clock tick may denote the same process.
            bytes[1032] ^= 4;
        }
        fs::write(copy.join(entry.file_name()), bytes)?;
    }
    Ok(())
}

/// Packets that the process itself has taken keep their checksums in the ring until their slots are reused.
#[test]
fn a_flip_in_a_ring_is_reported_by_recovery() -> Outcome {
    own_process!();
    let memory = memory_place();
    let recording = session().dir(memory.path().join("session")).sink(TextSink::new(std::io::sink())).start()?;
    fire();
    let own = process_dirs(&memory.path().join("session")).pop().ok_or("no directory")?;
    let ring = own.join("0-0.ring");
    let (left, out) = (memory.path().join("left"), memory.path().join("out"));
    let since = Instant::now();
    loop {
        assert!(since.elapsed() < Duration::from_secs(60), "the packets are not taken");
        tracepoint::trace!(number(0));
        if taken_packets(&fs::read(&ring)?).len() < 15 {
            continue;
        }
        copy_as_killed(&own, &left)?;
        let recovered = recover(&left, &out)?;
        assert!(recovered.is_complete(), "{recovered:?}");
        fs::remove_dir_all(&out)?;
        // Until only the open packet is still in its ring: packets of other threads are taken a little later.
        if (recovered.processes[0].unchecked, recovered.processes[0].mended) == (1, 1) {
            break;
        }
        fs::remove_dir_all(&left)?;
    }
    recording.stop()?;
    let ring = left.join("0-0.ring");
    let good = fs::read(&ring)?;
    let packets = taken_packets(&good);
    let mut random = Random(seed::seed() | 1);
    for _ in 0..400 {
        let (number, range) = &packets[random.below(packets.len())];
        let bit = range.start * 8 + random.below(range.len() * 8);
        let mut bad = good.clone();
        flip(&mut bad, bit);
        fs::write(&ring, &bad)?;
        let recovered = recover(&left, &out)?;
        let what = format!("bit {bit} of packet {number} at {range:?}");
        assert!(!recovered.is_complete(), "{what}: {recovered:?}");
        let notes = &recovered.processes[0].notes;
        let place = [format!("packet {number}"), format!("packet number {number}"), format!("byte {}:", range.start)];
        let is_reported =
            notes.iter().any(|note| note.contains("0-0.ring") && place.iter().any(|place| note.contains(place)));
        assert!(is_reported, "{what}: {notes:?}");
        fs::remove_dir_all(&out)?;
    }
    Ok(())
}

/// Returns all packets of a trace, as stored in its files.
fn packets_of(dir: &Path) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let metadata = Metadata::open(&dir.join("metadata"))?;
    let mut packets = Vec::new();
    for path in stream_files(dir)? {
        let bytes = fs::read(&path)?;
        for packet in Packets::open(&metadata, &path)? {
            let packet = packet?;
            packets.push(bytes[packet.offset as usize..][..packet.size() as usize].to_vec());
        }
    }
    packets.sort();
    Ok(packets)
}

#[test]
fn conversions_keep_checksums_and_leave_damaged_packets_out() -> Outcome {
    own_process!();
    let place = place();
    let [dir, file, back] = ["trace", "trace.dt", "back"].map(|name| place.path().join(name));
    let recording = session().sink(CtfSink::create(&dir)?).start()?;
    fire();
    recording.stop()?;
    let all = |path: &Path, out: &Path| convert(path, out, ConvertOptions::default(), |_| {});
    assert_eq!(all(&dir, &file)?.damage, Vec::<String>::new());
    assert_eq!(all(&file, &back)?.damage, Vec::<String>::new());
    assert_eq!(packets_of(&back)?, packets_of(&dir)?);
    assert_eq!((verify(&file)?.unchecked, verify(&back)?.unchecked), (0, 0));

    let stream = stream_files(&dir)?.into_iter().max_by_key(|path| path.metadata().map_or(0, |file| file.len()));
    let stream = stream.ok_or("a stream")?;
    let mut bytes = fs::read(&stream)?;
    bytes[96 + 200] ^= 1;
    fs::write(&stream, &bytes)?;
    let found = all(&dir, &place.path().join("damaged.dt"))?;
    let expected = format!("{}: byte 96: packet 2: its bytes have changed", stream.display());
    assert!(matches!(&found.damage[..], [damage] if damage.starts_with(&expected)), "{:?}", found.damage);
    Ok(())
}
