//! The threads of the listener that perform actions, and their messages to the serving thread.

use super::super::watch::DetectedCondition;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::ControlError;
use tracepoint_session_io::store::SessionStore;
use tracepoint_session_io::trigger::{
    ActionContext, CoreDump, FireRequest, FiredTrigger, Notification, NotificationSink, PostponedActions, TriggerRunner,
};

/// The tasks of the workers.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "the queue is short")]
pub(super) enum Task {
    CoreDump(CoreDump),
    Fire(FireRequest),
    /// A condition that the watcher has detected.
    Condition(DetectedCondition),
    Postponed(PostponedActions),
}

/// A task, and the client that waits for its end.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) client: Option<u64>,
    pub(super) task: Task,
}

/// The messages of workers to the serving thread.
#[derive(Debug)]
pub(super) enum FromWorker {
    Done(Job, Result<Vec<FiredTrigger>, ControlError>),
    Notify(Notification),
    Postpone(Instant, PostponedActions),
}

/// The connection of the workers, and of the programs that they start, to the serving thread.
#[derive(Clone, Debug)]
pub(super) struct ToServer {
    pub(super) sender: Sender<FromWorker>,
    pub(super) wake: Arc<OwnedFd>,
}

impl ToServer {
    /// Returns whether the server still receives.
    fn send(&self, message: FromWorker) -> bool {
        let is_sent = self.sender.send(message).is_ok();
        #[expect(clippy::host_endian_bytes, reason = "the kernel takes a number")]
        // Fails only if the counter is at its maximum, and then the server is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        is_sent
    }
}

impl NotificationSink for ToServer {
    fn notify(&self, notification: Notification) -> bool {
        self.send(FromWorker::Notify(notification))
    }

    fn postpone(&self, until: Instant, postponed: PostponedActions) {
        self.send(FromWorker::Postpone(until, postponed));
    }
}

/// Performs jobs until the queue is closed.
pub(super) fn work(queue: &Mutex<Receiver<Job>>, server: &ToServer, run_dir: &Path, context: &ActionContext) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        let fired = perform(&job.task, run_dir, context);
        if !server.send(FromWorker::Done(job, fired)) {
            return;
        }
    }
}

pub(super) fn perform(task: &Task, run_dir: &Path, context: &ActionContext) -> Result<Vec<FiredTrigger>, ControlError> {
    let store = RunDir::open(run_dir).map_err(ControlError::from).and_then(SessionStore::at)?;
    let runner = TriggerRunner::new(store, context.clone());
    match task {
        Task::CoreDump(core) => runner.run(core),
        Task::Fire(request) => Ok(runner.fire_one(request).into_iter().collect()),
        Task::Condition(seen) => Ok(runner.fire_when(&seen.session, &seen.when, &seen.occurrence)),
        Task::Postponed(postponed) => Ok(runner.resume(postponed).into_iter().collect()),
    }
}
