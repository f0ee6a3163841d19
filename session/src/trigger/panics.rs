//! The condition `panic`: a panic hook that precedes the previously installed one.
//!
//! The panicking thread queues an occurrence for each session with such a trigger, and waits until the actions are done, because the next
//! hook, or the end of the thread, may end the process. A panic of a thread that performs actions is not an occurrence.

use super::LAST_TIMEOUT;
use super::shared::{Shared, THREAD};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::Instant;
use std::{panic, process, thread};
use tracepoint_session_io::trigger::Detail;
use tracepoint_session_spec::TriggerCondition;

static SESSIONS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());
/// The process that owns the sessions: in a forked child the lock may never be released. Relaxed: a process stores its own id before it
/// adds a session.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Reports panics to this session from now on. Installs the hook.
pub(super) fn watch(shared: &Arc<Shared>) {
    static INSTALLED: Once = Once::new();
    if thread::panicking() {
        // A panicking thread may not install a hook.
        let _ = thread::Builder::new().spawn(|| INSTALLED.call_once(install)).map(thread::JoinHandle::join);
    } else {
        INSTALLED.call_once(install);
    }
    PROCESS.store(process::id(), Ordering::Relaxed);
    let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_other = |session: &Weak<Shared>| session.strong_count() > 0 && session.as_ptr() != Arc::as_ptr(shared);
    sessions.retain(is_other);
    sessions.push(Arc::downgrade(shared));
}

fn install() {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // A panic inside a probe is caught and counted, unless it ends the process.
        let is_caught = tracepoint_core::in_probe() && !cfg!(panic = "abort");
        let is_acting = thread::current().name() == Some(THREAD);
        if !is_caught && !is_acting && PROCESS.load(Ordering::Relaxed) == process::id() {
            report(info);
        }
        previous(info);
    }));
}

fn report(info: &PanicHookInfo<'_>) {
    let sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let payload = info.payload();
    let message =
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = message.unwrap_or_default();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current().name().unwrap_or_default().to_owned();
    let waiting: Vec<_> = sessions
        .iter()
        .filter_map(Weak::upgrade)
        .filter_map(|session| {
            session.report(&TriggerCondition::Panic, |occurrence| {
                for (name, text) in [("panic_message", message), ("panic_place", &place), ("panic_thread", &thread)] {
                    occurrence.add(name, Detail::Text(text.to_owned()));
                }
            })
        })
        .collect();
    let deadline = Instant::now() + LAST_TIMEOUT;
    for done in waiting {
        // Nothing is ever sent: the sender is dropped when the actions are done.
        let _ = done.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}
