//! Nanoseconds for each entry of three numbers, 16 bytes.

use crate::{Side, alternate, timed};
use datatrace::{Layout, TraceObject, TraceOptions, Version};
use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// Size of the buffer: all entries of a run fit, so that no run writes.
const LOGSIZE: u32 = 256 << 10;
const ENTRIES: u32 = LOGSIZE / 16 - 1;
/// Runs of the buffer that are timed as one.
const REPEATS: u32 = 50;

pub(crate) fn compare(place: &Path, rounds: usize) {
    let layout = Layout::new(LOGSIZE, 1);
    let framed = layout.version(Version::Framed);
    let sides: [Side; 5] = [
        ("append to a `Vec<u8>`", &|_| vec()),
        ("trace3, object locked", &|place| locked(place, layout)),
        ("trace3, object locked, framed", &|place| locked(place, framed)),
        ("append to a `Mutex<Vec<u8>>`", &|_| mutex()),
        ("trace3, object shared", &|place| shared(place, layout)),
    ];
    println!("one entry of (i32, i32, i64); ns, and times the first");
    println!("| | ns | times |");
    println!("|---|---|---|");
    for ((name, _), (time, ratio)) in sides.iter().zip(alternate(place, rounds, &sides)) {
        println!("| {name} | {:.2} | {ratio:.2} |", time.as_secs_f64() * 1e9 / f64::from(ENTRIES * REPEATS));
    }
}

/// Three numbers unknown to the compiler.
#[inline(always)]
fn numbers(n: u32) -> (i32, i32, i64) {
    (black_box(n.cast_signed()), black_box(7), black_box(i64::from(n)))
}

#[inline(always)]
fn append(vec: &mut Vec<u8>, (a, b, c): (i32, i32, i64)) {
    vec.extend_from_slice(&a.to_le_bytes());
    vec.extend_from_slice(&b.to_le_bytes());
    vec.extend_from_slice(&c.to_le_bytes());
}

fn vec() -> Duration {
    let mut vec = Vec::with_capacity(LOGSIZE as usize);
    let mut all = Duration::ZERO;
    for _ in 0..REPEATS {
        vec.clear();
        all += timed(|| (0..ENTRIES).for_each(|n| append(&mut vec, numbers(n))));
        black_box(&vec);
    }
    all
}

fn mutex() -> Duration {
    let vec = Mutex::new(Vec::with_capacity(LOGSIZE as usize));
    let mut all = Duration::ZERO;
    for _ in 0..REPEATS {
        vec.lock().expect("no panic").clear();
        all += timed(|| (0..ENTRIES).for_each(|n| append(&mut vec.lock().expect("no panic"), numbers(n))));
    }
    all
}

fn locked(place: &Path, layout: Layout) -> Duration {
    let object = TraceOptions::new(layout).directory(place).create("entries").expect("a file");
    let mut all = Duration::ZERO;
    for _ in 0..REPEATS {
        let mut writer = object.lock().expect("open");
        all += timed(|| {
            (0..ENTRIES).for_each(|n| {
                let (a, b, c) = numbers(n);
                writer.trace3(a, b, c).expect("room");
            });
        });
        drop(writer);
        empty(&object);
    }
    all
}

fn shared(place: &Path, layout: Layout) -> Duration {
    let object = TraceOptions::new(layout).directory(place).create("entries").expect("a file");
    let mut all = Duration::ZERO;
    for _ in 0..REPEATS {
        all += timed(|| {
            (0..ENTRIES).for_each(|n| {
                let (a, b, c) = numbers(n);
                object.trace3(a, b, c).expect("room");
            });
        });
        empty(&object);
    }
    all
}

/// Fills the rest of the buffer, which is then written, and empty.
fn empty(object: &TraceObject) {
    let mut writer = object.lock().expect("open");
    let frame = writer.header().version().frame_size();
    let rest = LOGSIZE as usize - frame - writer.buffered();
    writer.trace_buf(&vec![0; rest]).expect("room");
}
