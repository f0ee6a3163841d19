//! Ends a session without waiting for its sinks.

use super::recording::{Recording, RecordingParts};
use super::{SessionError, Summary};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracepoint_sinks::{SinkReport, own_thread};

/// A session whose events are disabled, and whose sinks may not have taken the remaining packets yet.
#[derive(Debug)]
pub(crate) struct PendingSummary {
    session: String,
    reports: Arc<Mutex<Vec<SinkReport>>>,
    is_done: Receiver<()>,
}

impl Recording {
    /// Ends the recording: its events are disabled on return. A separate thread finishes the sinks.
    pub(crate) fn end(mut self) -> PendingSummary {
        let (done, is_done) = channel();
        let reports = Arc::<Mutex<_>>::default();
        let summary = PendingSummary { session: self.name().to_owned(), reports: Arc::clone(&reports), is_done };
        // In a forked child `take` returns `None`: there is nothing to end.
        if let Some(mut parts) = self.take() {
            parts.switch_off();
            let rest = Arc::new(Mutex::new(Some(parts)));
            let (same, same_reports, sender) = (Arc::clone(&rest), Arc::clone(&reports), done.clone());
            // If no thread can be started, this thread finishes the sinks.
            if own_thread::spawn("tracepoint-stop", move || finish(&same, &same_reports, &sender)).is_err() {
                finish(&rest, &reports, &done);
            }
        }
        summary
    }
}

fn finish(rest: &Mutex<Option<RecordingParts>>, reports: &Mutex<Vec<SinkReport>>, done: &Sender<()>) {
    let parts = rest.lock().unwrap_or_else(PoisonError::into_inner).take();
    // If a sink panics, its trace lacks its end, and `verify` reports that.
    let finished = catch_unwind(AssertUnwindSafe(|| parts.map(RecordingParts::finish).unwrap_or_default()));
    *reports.lock().unwrap_or_else(PoisonError::into_inner) = finished.unwrap_or_default();
    // Fails if the receiver is gone.
    let _ = done.send(());
}

impl PendingSummary {
    /// The name of the session.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Returns the result; `None` if a sink is slow or blocks until `deadline`.
    pub(crate) fn wait_until(&self, deadline: Instant) -> Option<Result<Summary, SessionError>> {
        let left = deadline.saturating_duration_since(Instant::now());
        if self.is_done.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            return None;
        }
        let reports = std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner));
        Some(Summary::new(self.session.clone(), reports, 0).map_err(Into::into))
    }
}
