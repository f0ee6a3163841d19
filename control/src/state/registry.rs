//! The dumps that the program has registered.

use super::Dump;
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a program has registered.
pub(crate) struct Registered {
    /// From 1 on, in the order of registration.
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) tell: Box<dyn Fn(&Dump) + Send + Sync>,
    /// How many runs are late, and have not returned.
    late: AtomicUsize,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("name", &self.name).field("late", &self.late).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Registry {
    dumps: Vec<Arc<Registered>>,
    /// How many there ever were.
    count: u64,
    /// Wakes the agent, if one runs.
    wake: Option<Arc<OwnedFd>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { dumps: Vec::new(), count: 0, wake: None });

/// Held for a few instructions, never while a dump runs.
fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A state dump that is registered. Dropping it takes it back; a run that has begun goes on.
#[derive(Debug)]
#[must_use = "dropping it takes the dump back"]
pub struct StateDump(Arc<Registered>);

impl StateDump {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Keeps it registered for as long as the process lives.
    pub fn forever(self) {
        std::mem::forget(self);
    }
}

impl Drop for StateDump {
    fn drop(&mut self) {
        registry().dumps.retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

/// Registers a function that fires events which tell what there is: for recordings that begin later, and missed how it came to be.
///
/// It runs each time that a [session](crate::Session) begins to record in this process, and each time that a session that is controlled from
/// outside switches on more events, or finds a dump that was registered since: on a thread of its own, after the events were switched
/// on. What it fires goes into that session alone; other sessions neither record nor count it. Probes, aggregates and test sessions see
/// it. Around it stand the events `tracepoint:state_begin` and `tracepoint:state_end`, with the dump's name, which the session
/// records whatever its rules are: on their thread, what lies between them is state. Rules, filters and limits hold for state as for any
/// event.
///
/// The other threads go on meanwhile: what they fire may come before or after the state that it is about, in the order of time, and what a
/// dump tells of several things is no picture of one moment, unless it holds the locks that make it one.
///
/// Whoever starts a session waits for the dumps, for 500 ms together; a dump that takes longer goes on by itself, and is told as late
/// ([`StateDumpStatus`](crate::StateDumpStatus)). One that panics is caught, and counted. A dump may take locks: one that the thread that
/// starts a session holds makes it late.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tracepoint_control::{Session, sinks::TextSink, state_dump};
///
/// tracepoint::define_trace! {
///     provider = "server";
///     /// There is a connection.
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
/// Costs a thread for the time of each run, and two events.
pub fn state_dump(name: impl Into<String>, tell: impl Fn(&Dump) + Send + Sync + 'static) -> StateDump {
    let mut registry = registry();
    registry.count += 1;
    let number = registry.count;
    let dump = Arc::new(Registered { number, name: name.into(), tell: Box::new(tell), late: AtomicUsize::new(0) });
    registry.dumps.push(Arc::clone(&dump));
    if let Some(wake) = &registry.wake {
        // Any number that is not 0 is as good as another.
        let _ = rustix::io::write(wake, &[1; 8]);
    }
    StateDump(dump)
}

/// Those that were registered after number `seen`, in their order.
pub(crate) fn registered(seen: u64) -> Vec<Arc<Registered>> {
    registry().dumps.iter().filter(|dump| dump.number > seen).cloned().collect()
}

impl Registered {
    /// Whether a run goes on that nobody waits for.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed) > 0
    }

    /// A run goes on that is waited for no longer.
    pub(super) fn is_waited_for_no_longer(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Such a run has returned.
    pub(super) fn returned(&self) {
        self.late.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Wakes its holder when a dump is registered, for as long as it is held.
#[derive(Debug)]
pub(crate) struct Wake(Arc<OwnedFd>);

/// The one and only: that of the agent.
pub(crate) fn wake_for_dumps() -> rustix::io::Result<Wake> {
    let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    registry().wake = Some(Arc::clone(&wake));
    Ok(Wake(wake))
}

impl Wake {
    /// From here on it wakes for what is registered later.
    pub(crate) fn reset(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        let mut registry = registry();
        // Another agent may have begun since.
        if registry.wake.as_ref().is_some_and(|wake| Arc::ptr_eq(wake, &self.0)) {
            registry.wake = None;
        }
    }
}
