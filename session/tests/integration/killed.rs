//! The files that a killed process leaves, and how long they are kept; those of living processes are not removed.

use crate::common::{Other, Outcome, again, memory_place, names, part, process_dirs, ready, ring_files, until_ready};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "last";
    pub words(n: u64) { n: u64 = n }
}

const EVENTS: u64 = 1000;

fn session(place: &Path) -> SessionBuilder {
    Session::builder("last").events("last:*").channel(Channel::discard(64 << 10).spares(1)).dir(place.join("session"))
}

/// The other process: records, and waits for the end of its input. With `forks`, its child outlives it.
fn record(place: &Path, forks: bool) -> Outcome {
    let sink = CtfSink::create(place.join(format!("trace-{}", std::process::id())))?;
    let _session = session(place).sink(sink).start()?;
    (0..EVENTS).for_each(|n| tracepoint::trace!(words(n)));
    if forks {
        // SAFETY: the child waits for the end of its input, and leaves.
        let child = unsafe { libc::fork() };
        assert_ne!(child, -1, "no child was forked");
        if child == 0 {
            let _ = std::io::stdin().lines().count();
            std::process::exit(0);
        }
    }
    ready();
    Ok(())
}

fn start(test: &str, place: &Path, forks: bool) -> Other {
    let part = format!("{}{}", if forks { "forks " } else { "" }, place.display());
    until_ready(&mut again(test, &part))
}

/// Runs the part of this process, if it has one.
fn played() -> Result<bool, Box<dyn std::error::Error>> {
    let part = part();
    match part.strip_prefix("forks ") {
        _ if part.is_empty() => return Ok(false),
        Some(place) => record(Path::new(place), true)?,
        None => record(Path::new(&part), false)?,
    }
    Ok(true)
}

#[test]
fn a_killed_process_leaves_its_directory() -> Outcome {
    own_process!();
    if played()? {
        return Ok(());
    }
    let place = memory_place();
    let mut child = start("a_killed_process_leaves_its_directory", place.path(), false);
    child.kill();
    let dirs = process_dirs(&place.path().join("session"));
    let [dir] = dirs.as_slice() else { return Err(format!("{dirs:?}").into()) };
    let trace = place.path().join(format!("trace-{}", child.id()));
    assert_eq!(std::fs::read_to_string(dir.join("outputs"))?, format!("ctf {}\n", trace.display()));
    let metadata = std::fs::read_to_string(dir.join("metadata"))?;
    assert!(metadata.starts_with("/* CTF 1.8 */") && metadata.contains("last:words"), "{metadata}");
    // All recorded events, in any thread's ring: the main stream's `records`.
    let records = |path: &PathBuf| Ok(u64::from_le_bytes(std::fs::read(path)?[320..328].try_into()?));
    let counts: Vec<u64> = ring_files(dir).iter().map(records).collect::<Result<_, Box<dyn std::error::Error>>>()?;
    assert_eq!(counts.iter().sum::<u64>(), EVENTS, "{counts:?}");
    Ok(())
}

#[test]
fn the_newest_directories_of_killed_processes_are_kept() -> Outcome {
    own_process!();
    if played()? {
        return Ok(());
    }
    let test = "the_newest_directories_of_killed_processes_are_kept";
    let place = memory_place();
    let rings = place.path().join("session/rings");
    let living = start(test, place.path(), false);
    let mut dead = Vec::new();
    for _ in 0..4 {
        let before = names(&rings);
        let mut child = start(test, place.path(), false);
        child.kill();
        dead.extend(names(&rings).into_iter().filter(|name| !before.contains(name)));
        // Time stamps of files have the resolution of the kernel's tick.
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(dead.len(), 4, "{dead:?}");
    let record = |keep| session(place.path()).keep_dead(keep).sink(TextSink::new(Vec::new())).start()?.stop();
    record(8)?;
    assert_eq!(names(&rings).len(), 5);
    record(2)?;
    let left = names(&rings);
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(dead[2..].iter().all(|name| left.contains(name)), "{left:?} of {dead:?}");
    record(0)?;
    assert!(names(&rings).iter().all(|name| name.starts_with(&format!("{}-", living.id()))), "{:?}", names(&rings));
    // The living process ends by itself, successfully.
    assert!(living.end());
    assert_eq!(names(&place.path().join("session")), Vec::<String>::new());
    Ok(())
}

/// A forked child holds the lock of its parent, but is not its parent.
#[test]
fn a_child_that_outlives_a_process_does_not_keep_it_alive() -> Outcome {
    own_process!();
    if played()? {
        return Ok(());
    }
    let place = memory_place();
    let rings = place.path().join("session/rings");
    let mut child = start("a_child_that_outlives_a_process_does_not_keep_it_alive", place.path(), true);
    let record = || session(place.path()).keep_dead(0).sink(TextSink::new(Vec::new())).start()?.stop();
    record()?;
    assert_eq!(names(&rings).len(), 1, "both live");
    let input = child.kill();
    record()?;
    assert_eq!(names(&rings), Vec::<String>::new());
    drop(input);
    Ok(())
}
