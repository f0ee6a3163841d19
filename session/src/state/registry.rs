//! The registered state dumps of the program.

use super::dump::Dump;
use fileguard::Waker;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A registered dump.
pub(crate) struct RegisteredDump {
    /// Registration number, from 1.
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) function: Box<dyn Fn(&Dump) + Send + Sync>,
    /// Number of late runs that have not returned yet.
    late: AtomicUsize,
}

impl fmt::Debug for RegisteredDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredDump").field("name", &self.name).field("late", &self.late).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Registry {
    dumps: Vec<Arc<RegisteredDump>>,
    /// Number of registrations so far.
    count: u64,
    /// Wakes the agent, if one runs.
    wake: Option<Arc<Waker>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { dumps: Vec::new(), count: 0, wake: None });

/// Held for a few instructions only, never while a dump runs.
fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A registered state dump. Dropping it removes the registration; a running dump continues.
#[derive(Debug)]
#[must_use = "dropping it removes the state dump"]
pub struct StateDump(Arc<RegisteredDump>);

impl StateDump {
    /// Returns the name under which it was registered.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Keeps it registered until the process exits.
    pub fn forever(self) {
        std::mem::forget(self);
    }
}

impl Drop for StateDump {
    fn drop(&mut self) {
        registry().dumps.retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

/// Registers a function that fires events describing existing state, for recordings that start after that state came about.
///
/// The function runs each time that a [session](crate::Session) starts to record in this process, and each time that a remotely controlled
/// session enables more events or finds a dump registered since. It runs on a separate thread, after the events are enabled. Only that
/// session records and counts its events. Probes, aggregates and test sessions see them. They are enclosed by the events
/// `tracepoint:state_begin` and `tracepoint:state_end`, with the dump's name, which the session records regardless of its rules: between
/// the two, events of this thread are state. Rules, filters and limits apply as to any event.
///
/// Other threads keep running meanwhile: their events may be earlier or later in time than the state that they concern. A dump is a
/// consistent snapshot only if it holds the locks that make it one.
///
/// Starting a session waits for all its dumps, at most 500 ms in total; a dump that takes longer continues and is reported as late
/// (`StateDumpStatus`). A panic of a dump is caught and counted. A dump may take locks; if the thread that starts
/// the session holds one of them, the dump becomes late.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tracepoint::session::{Session, state_dump};
/// use tracepoint::sinks::TextSink;
///
/// tracepoint::define_trace! {
///     provider = "server";
///     /// An open connection.
///     pub connection(id: u64, peer: &str) { id: u64 = id, peer: str = peer }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connections = Arc::new(Mutex::new(vec![(1, "anna"), (2, "bert")]));
/// let all = Arc::clone(&connections);
/// let _dump = state_dump("connections", move |_| {
///     for (id, peer) in all.lock().unwrap().iter() {
///         tracepoint::trace!(connection(*id, peer));
///     }
/// });
/// # let place = tempfile::tempdir_in("/dev/shm")?;
/// let session = Session::builder("late").events("*").dir(place.path()).sink(TextSink::new(Vec::new())).start()?;
/// let summary = session.stop()?;
/// assert_eq!(summary.events().iter().find(|event| event.name == "server:connection").unwrap().recorded, 2);
/// # Ok(())
/// # }
/// ```
///
/// Costs a thread for the duration of each run, and two events.
pub fn state_dump(name: impl Into<String>, function: impl Fn(&Dump) + Send + Sync + 'static) -> StateDump {
    let mut registry = registry();
    registry.count += 1;
    let number = registry.count;
    let dump =
        Arc::new(RegisteredDump { number, name: name.into(), function: Box::new(function), late: AtomicUsize::new(0) });
    registry.dumps.push(Arc::clone(&dump));
    drop(registry);
    wake_agent();
    StateDump(dump)
}

/// Wakes the agent of the process, if there is one.
pub(crate) fn wake_agent() {
    let wake = registry().wake.clone();
    if let Some(wake) = wake {
        wake.wake();
    }
}

/// The dumps registered after number `seen`, in order of registration.
pub(crate) fn registered(seen: u64) -> Vec<Arc<RegisteredDump>> {
    registry().dumps.iter().filter(|dump| dump.number > seen).cloned().collect()
}

impl RegisteredDump {
    /// Returns whether a late run is still running.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed) > 0
    }

    /// Counts a run that the starting thread no longer waits for.
    pub(super) fn run_became_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the return of a late run.
    pub(super) fn late_run_returned(&self) {
        self.late.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets registrations of dumps and markers wake the agent while the value lives.
#[derive(Debug)]
pub(crate) struct Wake(Arc<Waker>);

/// Installs the process's only waker: the agent's.
pub(crate) fn wake_for_dumps(waker: Arc<Waker>) -> Wake {
    registry().wake = Some(Arc::clone(&waker));
    Wake(waker)
}

impl Drop for Wake {
    fn drop(&mut self) {
        let mut registry = registry();
        // A newer agent may have installed its own.
        if registry.wake.as_ref().is_some_and(|wake| Arc::ptr_eq(wake, &self.0)) {
            registry.wake = None;
        }
    }
}
