//! The rings of a recording: some are created at the start, so that events are enabled soon, and the others while it runs.

use crate::common::{Outcome, process_dirs, ring_files};
use crate::traced::{PATIENCE, Place, is_traced, spec};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_run_dir::AckState;
use tracepoint_session_spec::SinkSpec;

/// Polls until the condition holds.
fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

const RING: usize = 1 << 20;

#[test]
fn missing_rings_are_made_later_or_reported() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let child = place.start("rings::missing_rings_are_made_later_or_reported");
    let threads = fs::read_dir(format!("/proc/{}/task", child.id()))?.count() as u64;
    let count = |session: &str| {
        let dirs = process_dirs(&place.run_dir().join("sessions").join(session));
        dirs.iter().map(|dir| ring_files(dir).len()).sum::<usize>()
    };

    // A small one for each thread of the process, and more for new threads; and a large one for each.
    let sizes = || {
        let dirs = process_dirs(&place.run_dir().join("sessions").join("all"));
        let files = dirs.iter().flat_map(|dir| ring_files(dir));
        let large = |file: std::path::PathBuf| file.metadata().is_ok_and(|file| file.len() >= RING as u64);
        let (large, small): (Vec<_>, Vec<_>) = files.map(large).partition(|large| *large);
        // The counters of threads without a ring are in a file, too.
        (small.len() as u64 - 1, large.len() as u64)
    };
    let all = place.record("all", &["traced:tick"]);
    assert_eq!(place.until_recorded(&all, 5)[0].counters.total_lost(), 0);
    let is_enough = |(small, large)| small > threads && large >= threads;
    assert!(until(|| is_enough(sizes())), "{:?}", sizes());
    assert_eq!(place.acks(&all)[0].notices, []);
    // One thread records; the spare rings for the others are created once.
    let (small, large) = sizes();
    assert!(
        small <= 16.max(threads + 8) + 1 && large <= threads,
        "{small} small and {large} large ones for {threads} threads"
    );
    all.destroy(PATIENCE, false)?;

    // Memory for the rings that the threads need, but not for all.
    let mut wanted = spec(&["traced:tick"], &[SinkSpec::ctf(place.out("few")).into()]);
    (wanted.channel.ring_size, wanted.channel.spares) = (Some(RING), Some(16));
    wanted.limits.memory_cap = Some((threads + 4) * (RING as u64 + (64 << 10)));
    let few = place.controller.create("few", &wanted)?;
    let acks = place.until_recorded(&few, 5);
    assert_eq!((acks[0].state, acks[0].counters.total_lost()), (AckState::Recording, 0));
    let is_reported = || place.acks(&few)[0].notices.iter().any(|notice| notice.to_string().contains("memory_cap"));
    assert!(until(is_reported), "{:?}", place.acks(&few)[0]);
    assert!(count("few") < 16, "{}", count("few"));
    few.destroy(PATIENCE, false)?;

    // Not even for those.
    wanted = wanted.another();
    wanted.limits.memory_cap = Some(RING as u64 / 2);
    let none = place.controller.create("none", &wanted)?;
    let ack = place.acks(&none).remove(0);
    assert_eq!(ack.state, AckState::Refused);
    assert!(ack.error.as_ref().is_some_and(|error| error.contains("exceed its cap")), "{ack:?}");
    assert!(child.end());
    Ok(())
}
