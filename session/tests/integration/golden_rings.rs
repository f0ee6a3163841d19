//! The ring files that this version writes have the documented layout, byte for byte.
//!
//! `reader/tests/golden/` contains such files of every version of the layout, with names, numbers and times that are the same in every run;
//! `TRACEPOINT_GOLDEN=1` writes the files of this version, if it is a new one (`docs/format-ring.md`).

use crate::common::{Outcome, memory_place, process_dirs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::{env, fs, thread};
use tracepoint_reader::internal::seal;
use tracepoint_ring::channel::CHECKSUM;
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Clock, Session};

tracepoint::define_trace! {
    provider = "golden";
    pub number(n: u64) { n: u64 = n }
    pub text(n: u32, words: &str) { n: u32 = n, words: str = words }
    pub blob(bytes: &[u8]) { bytes: [u8] = bytes }
}

/// The version of the layout.
const VERSION: &str = "v1";
const RINGS: [&str; 2] = ["0-0.ring", "0-orphans.ring"];
const UUID: [u8; 16] = *b"0123456789abcdef";

static TIME: AtomicU64 = AtomicU64::new(1000);

fn time() -> u64 {
    TIME.load(Ordering::Relaxed)
}

fn later() {
    TIME.fetch_add(10, Ordering::Relaxed);
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../reader/tests/golden").join(VERSION)
}

/// More events than the ring holds, two texts in a packet that stays open, and a loss of each thread.
fn fire() {
    for n in 0..100 {
        later();
        tracepoint::trace!(number(n));
    }
    later();
    tracepoint::trace!(text(7, "two words"));
    later();
    tracepoint::trace!(blob(&[1; 1000]));
    later();
    tracepoint::trace!(text(8, ""));
}

/// Replaces values that differ between runs by those of the golden files.
fn normalize(ring: &mut [u8]) {
    fn put(ring: &mut [u8], at: usize, bytes: &[u8]) {
        ring[at..at + bytes.len()].copy_from_slice(bytes);
    }
    let own_uuid: [u8; 16] = ring[24..40].try_into().expect("sixteen bytes");
    put(ring, 24, &UUID);
    put(ring, 144, &[0; 8]);
    // The number of rings was added after the files; `rings_by_need` tests it.
    put(ring, 152, &[0; 8]);
    // The ring of an ended thread returns to the pool as soon as the drain sees that another thread found none.
    if ring[256] == 0 && ring[260..264] != [0; 4] {
        put(ring, 256, &2u32.to_le_bytes());
    }
    if ring[256] != 0 {
        put(ring, 260, &77u32.to_le_bytes());
    }
    put(ring, 464, &4242u64.to_le_bytes());
    put(ring, 1024, &4242u32.to_le_bytes());
    put(ring, 1032, &777u64.to_le_bytes());
    put(ring, 1040, &[9; 16]);
    put(ring, 1056, &4_026_531_836u64.to_le_bytes());
    for (at, limit, text) in [(1088, 1022, "/bin/golden"), (2112, 254, "host"), (2624, 1022, "/somewhere/metadata")] {
        ring[at..at + 2 + limit].fill(0);
        put(ring, at, &(text.len() as u16).to_le_bytes());
        put(ring, at + 2, text.as_bytes());
    }
    for at in (4096..ring.len() - 96).step_by(8) {
        if ring[at..at + 4] == 0xC1FC_1FC1_u32.to_le_bytes() && ring[at + 4..at + 20] == own_uuid {
            put(ring, at + 4, &UUID);
            put(ring, at + 80, &77u32.to_le_bytes());
            let bits: [u8; 8] = ring[at + 56..at + 64].try_into().expect("eight bytes");
            // The checksum covers the uuid and tid, which are replaced.
            if ring[at + CHECKSUM..][..4] != [0; 4] {
                seal(&mut ring[at..][..u64::from_le_bytes(bits) as usize / 8]);
            }
        }
    }
}

/// The same for the metadata.
fn normalize_metadata(text: &str) -> String {
    let line = |line: &str| {
        let (key, value) = line.split_once(" = ").unwrap_or((line, ""));
        let fixed = match key.trim() {
            "uuid" => "\"30313233-3435-3637-3839-616263646566\";",
            "hostname" => "\"host\";",
            "procname" => "\"golden\";",
            "executable" => "\"/bin/golden\";",
            "vpid" => "4242;",
            _ => value,
        };
        if value.is_empty() { format!("{line}\n") } else { format!("{key} = {fixed}\n") }
    };
    text.lines().map(line).collect()
}

fn check(name: &str, files: &Path) -> Outcome {
    let kept = golden().join(name);
    let writes = env::var_os("TRACEPOINT_GOLDEN").is_some();
    if writes {
        fs::create_dir_all(&kept)?;
        fs::write(kept.join("metadata"), normalize_metadata(&fs::read_to_string(files.join("metadata"))?))?;
    }
    for ring in RINGS {
        let mut bytes = fs::read(files.join(ring))?;
        normalize(&mut bytes);
        if writes {
            fs::write(kept.join(ring), &bytes)?;
        }
        let expected = fs::read(kept.join(ring))?;
        let differs = bytes.iter().zip(&expected).position(|(byte, expected)| byte != expected);
        assert!(differs.is_none() && bytes.len() == expected.len(), "{name}/{ring} differs at byte {differs:?}");
    }
    Ok(())
}

#[test]
fn rings_equal_the_golden_files() -> Outcome {
    own_process!();
    let place = memory_place();
    let dir = place.path().join("session");
    let channel = Channel::overwrite(3 * 512).packets(3).spares(1).max_rings(1);
    let session =
        Session::builder("golden").events("golden:*").max_events(3).channel(channel).dir(&dir).clock(Clock::User(time));
    let session = session.sink(TextSink::new(std::io::sink())).start()?;
    let own = process_dirs(&dir).pop().ok_or("no directory")?;
    let (fired, has_fired) = channel_of_nothing();
    let (ends, end) = channel_of_nothing();
    let owner = thread::spawn(move || {
        fire();
        drop(fired);
        let _ = end.recv();
    });
    let _ = has_fired.recv();
    // There is no ring for this thread.
    later();
    tracepoint::trace!(number(1000));
    // The files that a process leaves when it is killed now.
    check("killed", &own)?;
    drop(ends);
    owner.join().map_err(|_| "it panicked")?;
    // The names of the files that stay when the session ends.
    let clean = place.path().join("clean");
    fs::create_dir(&clean)?;
    for file in RINGS.iter().chain(&["metadata"]) {
        fs::hard_link(own.join(file), clean.join(file))?;
    }
    session.stop()?;
    check("clean", &clean)
}

/// Two ends, used to wait for one to be dropped.
fn channel_of_nothing() -> (std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>) {
    channel()
}
