//! Bytes per second into a file.

use crate::mapped::MappedFile;
use crate::{Side, alternate, timed};
use datatrace::{HEADER_SIZE, Layout, TraceObject, TraceOptions, Version};
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

/// Bytes in each run.
const TOTAL: u32 = 64 << 20;
/// Bytes of an entry: an IP header, a TCP header, and protocol data.
const ENTRY: [u8; 64] = [0xA5; 64];

pub(crate) fn compare(place: &Path, rounds: usize) {
    println!("{} MiB in entries of {} bytes; MB/s, and the rate next to the plain writer's", TOTAL >> 20, ENTRY.len());
    println!("| buffer | file | plain | plain, from byte 20 | locked | positional | shared | framed | mapped |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for logsize in [10_000, 64 << 10, 256 << 10, 1 << 20] {
        let all = TOTAL / logsize + 1;
        line(place, rounds, "grows", logsize, all);
        line(place, rounds, "wraps", logsize, all / 8);
    }
}

fn line(place: &Path, rounds: usize, kind: &str, logsize: u32, filesize: u32) {
    let layout = Layout::new(logsize, filesize);
    let positional = |layout| TraceOptions::new(layout).directory(place);
    let options = |layout| positional(layout).map_header();
    let sides: [Side; 7] = [
        ("plain", &|place| plain(place, logsize, filesize, 0)),
        ("plain, from byte 20", &|place| plain(place, logsize, filesize, HEADER_SIZE)),
        ("locked", &|_| locked(options(layout))),
        ("positional", &|_| locked(positional(layout))),
        ("shared", &|_| shared(options(layout))),
        ("framed", &|_| locked(options(layout.version(Version::Framed)))),
        ("mapped", &|place| mapped(place, logsize, filesize)),
    ];
    print!("| {logsize} | {kind}");
    for (time, ratio) in alternate(place, rounds, &sides) {
        print!(" | {:.0} ({:.2})", f64::from(TOTAL) / 1e6 / time.as_secs_f64(), 1.0 / ratio);
    }
    println!(" |");
}

fn entries() -> impl Iterator<Item = &'static [u8]> {
    (0..TOTAL as usize / ENTRY.len()).map(|_| std::hint::black_box(&ENTRY[..]))
}

/// A `BufWriter` with the same buffer size that returns to the start of its file where the dt file does. Its entries begin at `start`, so that it
/// can write the same bytes at the same offsets.
fn plain(place: &Path, logsize: u32, filesize: u32, start: usize) -> Duration {
    let path = place.join("plain");
    let most = u64::from(logsize) * u64::from(filesize);
    let time = timed(|| {
        let mut file = File::create(&path).expect("a file");
        file.write_all(&[0; HEADER_SIZE][..start]).expect("room");
        let mut writer = BufWriter::with_capacity(logsize as usize, file);
        let mut written = 0;
        for entry in entries() {
            if written + entry.len() as u64 > most {
                writer.seek(SeekFrom::Start(start as u64)).expect("a place");
                written = 0;
            }
            writer.write_all(entry).expect("room");
            written += entry.len() as u64;
        }
        writer.flush().expect("room");
    });
    std::fs::remove_file(&path).expect("was made");
    time
}

fn remove(object: &TraceObject) {
    std::fs::remove_file(object.path()).expect("was made");
}

/// One thread holds the object.
fn locked(options: TraceOptions) -> Duration {
    let mut object = None;
    let time = timed(|| {
        let object = object.insert(options.create("bench").expect("a file"));
        let mut writer = object.lock().expect("open");
        entries().for_each(|entry| writer.trace_buf(entry).expect("room"));
        drop(writer);
        object.close().expect("room");
    });
    remove(&object.expect("made"));
    time
}

/// Each call takes the object's lock.
fn shared(options: TraceOptions) -> Duration {
    let mut object = None;
    let time = timed(|| {
        let object = object.insert(options.create("bench").expect("a file"));
        entries().for_each(|entry| object.trace_buf(entry).expect("room"));
        object.close().expect("room");
    });
    remove(&object.expect("made"));
    time
}

/// The same file, mapped: created at full size, with entries stored in place.
fn mapped(place: &Path, logsize: u32, filesize: u32) -> Duration {
    let path = place.join("mapped");
    let time = timed(|| {
        let mut file = MappedFile::create(&path, logsize as usize, filesize as usize);
        entries().for_each(|entry| file.trace(entry));
    });
    std::fs::remove_file(&path).expect("was made");
    time
}
