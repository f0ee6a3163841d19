//! The rings of all processes of a session together stay below its cap.

use crate::common::{Outcome, again, event, lost, memory_place, part, process_dirs, ready, ring_files, until_ready};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "cap";
    pub seen(n: u64) { n: u64 = n }
}

fn session(dir: &Path) -> SessionBuilder {
    Session::builder("cap")
        .events("cap:*")
        .channel(Channel::discard(64 << 10).spares(2))
        .sink(TextSink::new(Vec::new()))
        .dir(dir)
}

/// Returns the size of all rings of a session.
fn size(dir: &Path) -> u64 {
    let files: Vec<PathBuf> = process_dirs(dir).iter().flat_map(|dir| ring_files(dir)).collect();
    files.iter().map(|file| std::fs::metadata(file).expect("it is there").len()).sum()
}

#[test]
fn living_processes_count_towards_the_cap() -> Outcome {
    own_process!();
    if let Some(dir) = part().strip_prefix("in ") {
        let _session = session(Path::new(dir)).start()?;
        ready();
        return Ok(());
    }
    let place = memory_place();
    let dir = place.path().join("session");
    let part = format!("in {}", dir.display());
    let mut other = until_ready(&mut again("living_processes_count_towards_the_cap", &part));
    let one = size(&dir);
    assert!(one > 2 * (64 << 10), "{one}");
    let error = session(&dir).memory_cap(2 * one - 1).start().err().ok_or("it goes beyond the cap")?.to_string();
    let expected = format!("cap of {}", 2 * one - 1);
    assert!(error.contains(&expected) && error.contains(".memory_cap(bytes)"), "{error}");
    assert_eq!(size(&dir), one, "nothing is left of the ring that was refused");
    session(&dir).memory_cap(2 * one).start()?.stop()?;
    // The rings of dead processes do not count after the next count of the living ones: one took place for the refused session, and
    // counting takes at most a twentieth of the time.
    other.kill();
    let killed = Instant::now();
    let last = loop {
        match session(&dir).memory_cap(one).start() {
            Err(_) if killed.elapsed() < Duration::from_secs(30) => thread::sleep(Duration::from_millis(1)),
            last => break last?,
        }
    };
    last.stop()?;
    assert_eq!(size(&dir), one, "its rings are kept");
    Ok(())
}

#[test]
fn events_of_threads_beyond_the_cap_are_counted_as_lost() -> Outcome {
    const THREADS: u64 = 8;
    own_process!();
    let place = memory_place();
    let probe = session(place.path()).start()?;
    let cap = size(place.path()) + (64 << 10);
    probe.stop()?;
    let session = session(place.path()).memory_cap(cap).start()?;
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                tracepoint::trace!(seen(n));
                // By now, every thread would have a ring if more could be created.
                thread::sleep(Duration::from_millis(100));
                tracepoint::trace!(seen(n));
                barrier.wait();
            });
        }
    });
    assert!(size(place.path()) <= cap);
    let summary = session.stop()?;
    let event = event(&summary, "cap:seen");
    assert_eq!(event.fired, 2 * THREADS);
    assert_eq!(event.recorded + lost(event), 2 * THREADS);
    assert!(event.recorded <= 6 && event.lost["no_ring"] >= 10, "{event:?}");
    Ok(())
}
