//! Many short processes that share a session's directory: those that end normally leave nothing, those that are killed leave their rings,
//! and the configured number of these is kept.
//!
//! `TRACEPOINT_PROCESSES` sets their number; the default is for CI.

use crate::common::{Outcome, again, event, memory_place, names, part, process_dirs, ring_files};
use std::env;
use std::path::Path;
use std::process::{Child, Stdio};
use tracepoint_reader::{recover, verify};
use tracepoint_session::sinks::TextSink;
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "brief";
    pub life(n: u64) { n: u64 = n }
}

const EVENTS: u64 = 200;
const KEEP: usize = 5;
/// Number of processes that run at the same time.
const AT_ONCE: u64 = 4;
/// One in this many processes is killed.
const KILLED: u64 = 5;
const RING: u64 = 64 << 10;

fn session(dir: &Path) -> SessionBuilder {
    let channel = Channel::discard(RING as usize).spares(1);
    Session::builder("brief")
        .events("brief:*")
        .channel(channel)
        .dir(dir)
        .keep_dead(KEEP)
        .sink(TextSink::new(std::io::sink()))
}

/// A short process that ends normally or is killed.
fn live(dir: &Path, killed: bool) -> Outcome {
    let session = session(dir).start()?;
    (0..EVENTS).for_each(|n| tracepoint::trace!(life(n)));
    if killed {
        // SIGKILL to itself: no code runs at the end.
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
    }
    let summary = session.stop()?;
    let life = event(&summary, "brief:life");
    assert_eq!((life.fired, life.recorded), (EVENTS, EVENTS), "{life:?}");
    Ok(())
}

fn spawn(dir: &Path, killed: bool) -> std::io::Result<Child> {
    let part = format!("{} {}", if killed { "killed" } else { "ends" }, dir.display());
    again("ended_processes_leave_only_recoverable_directories", &part)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
}

#[test]
fn ended_processes_leave_only_recoverable_directories() -> Outcome {
    own_process!();
    if let Some((end, dir)) = part().split_once(' ') {
        return live(Path::new(dir), end == "killed");
    }
    let processes: u64 = env::var("TRACEPOINT_PROCESSES").map_or(Ok(200), |processes| processes.parse())?;
    let place = memory_place();
    let dir = place.path().join("session");
    let rings = dir.join("rings");
    let descriptors = std::fs::read_dir("/proc/self/fd")?.count();
    let mut next = 0;
    while next < processes {
        let ids = next..processes.min(next + AT_ONCE);
        next = ids.end;
        let children: Vec<_> =
            ids.map(|n| Ok((n % KILLED == 0, spawn(&dir, n % KILLED == 0)?))).collect::<std::io::Result<_>>()?;
        for (killed, mut child) in children {
            assert_eq!(child.wait()?.success(), !killed);
        }
        // A starting process removes surplus directories; processes that died later are not counted yet.
        assert!(names(&rings).len() <= KEEP + AT_ONCE as usize, "{:?}", names(&rings));
    }
    session(&dir).start()?.stop()?;
    assert_eq!(names(&rings).len(), KEEP.min(processes.div_ceil(KILLED) as usize));
    for (n, process) in process_dirs(&dir).iter().enumerate() {
        let bytes: u64 = ring_files(process).iter().map(|file| file.metadata().map_or(0, |file| file.len())).sum();
        // Its thread's ring, and at most three spare ones: one is configured, and two are created for each new thread.
        assert!(bytes < 7 * RING, "{bytes} in {}", process.display());
        let out = place.path().join(format!("out-{n}"));
        let recovered = recover(process, &out)?;
        assert!(recovered.is_complete(), "{recovered:?}");
        assert_eq!(recovered.processes[0].records, EVENTS, "{recovered:?}");
        let report = verify(&out)?;
        assert!(report.passed(), "{:?}", report.failures().collect::<Vec<_>>());
    }
    session(&dir).keep_dead(0).start()?.stop()?;
    assert_eq!(names(&dir), Vec::<String>::new());
    assert_eq!(std::fs::read_dir("/proc/self/fd")?.count(), descriptors);
    Ok(())
}
