//! The lower bound of a drain: a loop that writes packets which another core has just filled.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The size used with a ring of the default size.
const PACKET: usize = 128 << 10;
const PACKETS: usize = 8;
const RECORD: usize = 24;

/// The number of records of 24 bytes that are written into a file in `directory` per second of wall time, measured for `time`.
///
/// # Errors
///
/// If the file cannot be made or written.
pub fn kept_per_second(directory: &Path, time: Duration) -> Result<f64, Box<dyn std::error::Error>> {
    let packets: Vec<_> = (0..PACKETS).map(|_| Mutex::new(vec![0_u8; PACKET])).collect();
    let (filled, written, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let mut file = tempfile::tempfile_in(directory)?;
    thread::scope(|scope| {
        scope.spawn(|| fill(&packets, &filled, &written, &done));
        let kept = write(&packets, &filled, &written, &mut file, time);
        done.store(true, Ordering::Release);
        kept
    })
}

fn fill(packets: &[Mutex<Vec<u8>>], filled: &AtomicUsize, written: &AtomicUsize, done: &AtomicBool) {
    let mut number = 0_u64;
    while !done.load(Ordering::Acquire) {
        let next = filled.load(Ordering::Relaxed);
        if next - written.load(Ordering::Acquire) == PACKETS {
            std::hint::spin_loop();
            continue;
        }
        let mut packet = packets[next % PACKETS].lock().expect("no panic");
        for record in packet.chunks_exact_mut(RECORD) {
            number += 1;
            for word in record.chunks_exact_mut(8) {
                word.copy_from_slice(&number.to_le_bytes());
            }
        }
        drop(packet);
        filled.store(next + 1, Ordering::Release);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of events is far below 2^52")]
fn write(
    packets: &[Mutex<Vec<u8>>],
    filled: &AtomicUsize,
    written: &AtomicUsize,
    file: &mut File,
    time: Duration,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (begun, mut number) = (Instant::now(), 0);
    while begun.elapsed() < time {
        if filled.load(Ordering::Acquire) == number {
            std::hint::spin_loop();
            continue;
        }
        file.write_all(&packets[number % PACKETS].lock().expect("no panic"))?;
        number += 1;
        written.store(number, Ordering::Release);
    }
    Ok((number * (PACKET / RECORD)) as f64 / begun.elapsed().as_secs_f64())
}
