//! The recorder's part in the triggers of its session: it watches and acts while no listener runs. A listener watches all sessions.
//!
//! One thread watches and acts, so a snapshot delays only the detection of the next conditions.

use super::programs::Programs;
use super::socket::owner;
use super::watch::{DetectedCondition, Watcher};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::store::SessionStore;
use tracepoint_session_io::trigger::connection::NOTIFY;
use tracepoint_session_io::trigger::{
    ActionContext, Notification, NotificationSink, PostponedActions, ProgramStarter, TriggerRunner,
};
use tracepoint_sinks::own_thread::leave_signals_to_the_program;

/// Watches a session until it is dropped; then performs the postponed actions.
#[derive(Debug)]
pub(crate) struct RecorderWatch {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The postponed actions, with their times.
#[derive(Debug, Default)]
struct ActionQueue(Mutex<Vec<(Instant, PostponedActions)>>);

impl RecorderWatch {
    /// Watches a session. Programs are started only if `may_run`.
    pub(crate) fn start(run_dir: &Path, session: &str, may_run: bool) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (own, run_dir, session) = (Arc::clone(&stop), run_dir.to_owned(), session.to_owned());
        let mut watcher = Watcher::new(&run_dir, Some(&session));
        let watch = move || {
            leave_signals_to_the_program();
            let waiting = Arc::new(ActionQueue::default());
            let context = ActionContext {
                programs: may_run.then(|| Arc::new(Programs::new(false)) as Arc<dyn ProgramStarter>),
                listening: Some(Arc::clone(&waiting) as Arc<dyn NotificationSink>),
            };
            let runner = ActionRunner { run_dir, context };
            while let Some(seen) = watcher.next(own.as_fd()) {
                seen.iter().filter(|seen| seen.session == session).for_each(|seen| runner.act(seen));
                waiting.due(Some(Instant::now())).iter().for_each(|postponed| runner.resume(postponed));
            }
            waiting.due(None).iter().for_each(|postponed| runner.resume(postponed));
        };
        let thread = Builder::new().name("tracepoint-watch".to_owned()).spawn(watch)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for RecorderWatch {
    fn drop(&mut self) {
        #[expect(clippy::host_endian_bytes, reason = "the kernel takes a number")]
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The directory, and the context of actions.
struct ActionRunner {
    run_dir: PathBuf,
    context: ActionContext,
}

impl ActionRunner {
    fn act(&self, seen: &DetectedCondition) {
        if owner(&self.run_dir.join(NOTIFY)).is_none()
            && let Some(runner) = self.runner()
        {
            // The results are in the states of the triggers.
            runner.fire_when(&seen.session, &seen.when, &seen.occurrence);
        }
    }

    fn resume(&self, postponed: &PostponedActions) {
        let _ = self.runner().and_then(|runner| runner.resume(postponed));
    }

    fn runner(&self) -> Option<TriggerRunner> {
        let store = SessionStore::at(RunDir::open(&self.run_dir).ok()?).ok()?;
        Some(TriggerRunner::new(store, self.context.clone()))
    }
}

impl ActionQueue {
    /// Takes the actions that are due at this time, or all.
    fn due(&self, now: Option<Instant>) -> Vec<PostponedActions> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (due, later) = waiting.drain(..).partition(|(at, _)| now.is_none_or(|now| *at <= now));
        *waiting = later;
        let due: Vec<(Instant, PostponedActions)> = due;
        due.into_iter().map(|(_, postponed)| postponed).collect()
    }
}

impl NotificationSink for ActionQueue {
    fn notify(&self, _: Notification) -> bool {
        false
    }

    fn postpone(&self, until: Instant, postponed: PostponedActions) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((until, postponed));
    }
}
