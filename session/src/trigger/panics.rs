//! The condition `panic`.
//!
//! The panicking thread queues an occurrence for each session with such a trigger, and waits until the actions are done, because the next
//! hook, or the end of the thread, may end the process. A panic of a thread that performs actions is not an occurrence.

use super::LAST_TIMEOUT;
use super::shared::{SharedTriggers, THREAD};
use crate::panic_hook::{self, PanicUse};
use std::panic::PanicHookInfo;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Instant;
use tracepoint_session_io::trigger::Detail;
use tracepoint_session_spec::TriggerCondition;

static SESSIONS: Mutex<Vec<Weak<SharedTriggers>>> = Mutex::new(Vec::new());
/// Reports panics to this session from now on. If the hook cannot be installed, none is reported.
pub(super) fn watch(shared: &Arc<SharedTriggers>) {
    let _ = panic_hook::install(PanicUse::Triggers, report);
    let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_other =
        |session: &Weak<SharedTriggers>| session.strong_count() > 0 && session.as_ptr() != Arc::as_ptr(shared);
    sessions.retain(is_other);
    sessions.push(Arc::downgrade(shared));
}

fn report(info: &PanicHookInfo<'_>) {
    let is_acting = thread::current().name() == Some(THREAD);
    if is_acting {
        return;
    }
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
