//! Snapshots of a flight recorder at full rate: `recover` without any help of the process, repeatedly.
//!
//! `TRACEPOINT_SNAPSHOTS` sets their number; the default is for CI. Their cost for the process is printed, not checked: build with
//! `--release` for the full rate.

use crate::common::{Outcome, again, memory_place, part, process_dirs, until_ready, view};
use std::env;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tracepoint_reader::{Item, Trace, Value, recover, verify};
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "flight";
    pub sample(n: u64, half: u32) { n: u64 = n, half: u32 = half }
}

const RING: usize = 256 << 10;

/// The observed process: records until it is killed.
fn record(dir: &Path) -> Outcome {
    let session = Session::builder("flight").events("flight:*").channel(Channel::overwrite(RING).spares(1)).dir(dir);
    let _session = session.sink(TextSink::new(std::io::sink())).start()?;
    println!("ready");
    for n in 0.. {
        tracepoint::trace!(sample(n, (n / 2) as u32));
    }
    Ok(())
}

/// Reads a number of a ring's header.
fn number(ring: &File, at: u64) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    ring.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns the number of events in a trace, whose numbers increase, and the number of gaps between them.
fn gaps(trace: &Path) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let (mut last, mut gaps, mut events) = (None, 0, 0);
    for item in Trace::open(trace)?.items() {
        match item {
            Item::Event(event) => {
                let fields = event.fields.as_ref().ok_or("an event without fields")?;
                let field = |name: &str| fields.get(name).and_then(Value::as_u64).ok_or("an event lacks a field");
                let n = field("n")?;
                assert_eq!(field("half")?, u64::from((n / 2) as u32), "the fields of one event");
                assert!(last.is_none_or(|last| n > last), "{n} after {last:?}");
                gaps += u64::from(last.is_some_and(|last| n != last + 1));
                last = Some(n);
                events += 1;
            }
            Item::Loss(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok((events, gaps))
}

/// The contents of a snapshot.
struct Snapshot {
    /// The fraction of the ring's bytes, in thousandths.
    part: u64,
    /// Number of gaps between events, where the process was faster.
    gaps: u64,
}

/// Takes a snapshot.
fn snapshot(process: &Path, out: &Path, ring: &File, viewed: bool) -> Result<Snapshot, Box<dyn std::error::Error>> {
    let recovered = recover(process, out)?;
    let [process] = &recovered.processes[..] else { return Err(format!("one process: {recovered:?}").into()) };
    let (events, gaps) = gaps(out)?;
    assert_eq!(events, process.records, "{process:?}");
    let report = verify(out)?;
    let wrong: Vec<_> = report.failures().collect();
    assert!(wrong.is_empty() && report.snapshots() == 1 && process.snapshot, "{wrong:?} {process:?}");
    if viewed {
        assert_eq!(view(&[out]).lines.len() as u64, process.records);
    }
    let bytes = out.join("channel0_0").metadata()?.len();
    let capacity = number(ring, 104)? * number(ring, 112)?;
    Ok(Snapshot { part: bytes * 1000 / capacity, gaps })
}

/// Returns how many events a millisecond are recorded while `act` runs.
fn rate(ring: &File, act: impl FnOnce() -> Outcome) -> Result<u128, Box<dyn std::error::Error>> {
    let (before, since) = (number(ring, 320)?, Instant::now());
    act()?;
    Ok(u128::from(number(ring, 320)? - before) / since.elapsed().as_millis())
}

#[test]
fn a_snapshot_of_a_process_at_full_rate_has_most_of_its_ring() -> Outcome {
    own_process!();
    if let Some(dir) = part().strip_prefix("in ") {
        return record(Path::new(dir));
    }
    let snapshots: u64 = env::var("TRACEPOINT_SNAPSHOTS").map_or(Ok(30), |snapshots| snapshots.parse())?;
    let place = memory_place();
    let dir = place.path().join("session");
    let test = "a_snapshot_of_a_process_at_full_rate_has_most_of_its_ring";
    let _child = until_ready(&mut again(test, &format!("in {}", dir.display())));
    let process = process_dirs(&dir).pop().ok_or("no process")?;
    let ring = File::open(process.join("0-0.ring"))?;
    while number(&ring, 328)? < 2 * number(&ring, 112)? {
        std::thread::sleep(Duration::from_millis(1));
    }
    let alone = rate(&ring, || {
        std::thread::sleep(Duration::from_millis(500));
        Ok(())
    })?;
    let (mut parts, mut with_gaps) = (Vec::new(), 0);
    let beside = rate(&ring, || {
        for n in 0..snapshots {
            let out = place.path().join("out");
            let made =
                snapshot(&process, &out, &ring, n % 10 == 0).map_err(|error| format!("snapshot {n}: {error}"))?;
            parts.push(made.part);
            with_gaps += u64::from(made.gaps > 0);
            std::fs::remove_dir_all(&out)?;
        }
        Ok(())
    })?;
    parts.sort_unstable();
    let (least, median) = (parts[0], parts[parts.len() / 2]);
    println!(
        "{snapshots} snapshots: {least} thousandths of the ring at least, {median} in the median; {with_gaps} have gaps; \
         {alone} events a millisecond alone, {beside} while snapshots are made"
    );
    assert!(least >= 800, "a snapshot has {least} thousandths of the ring");
    Ok(())
}
