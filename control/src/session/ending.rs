//! The end of a session for those who do not wait for its sinks.

use super::recording::{Recording, Running};
use super::{SessionError, Summary};
use crate::own_thread::leave_signals_to_the_program;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;
use tracepoint_sinks::SinkReport;

/// A session whose events are off, and whose sinks may not have taken all of the rest yet.
#[derive(Debug)]
pub(crate) struct Ending {
    session: String,
    reports: Receiver<Vec<SinkReport>>,
}

impl Recording {
    /// Ends the recording: when this returns its events are off. What is left for its sinks is done by a thread of its own.
    pub(crate) fn end(mut self) -> Ending {
        let (done, reports) = channel();
        let ending = Ending { session: self.name().to_owned(), reports };
        // In a forked child there is nothing to end.
        if let Some(mut running) = self.take() {
            running.switch_off();
            let rest = Arc::new(Mutex::new(Some(running)));
            let (same, tell) = (Arc::clone(&rest), done.clone());
            let body = move || {
                tracepoint_core::private::never_trace_this_thread();
                leave_signals_to_the_program();
                finish(&same, &tell);
            };
            // Without a thread to be had it is done here.
            if thread::Builder::new().name("tracepoint-stop".to_owned()).spawn(body).is_err() {
                finish(&rest, &done);
            }
        }
        ending
    }
}

fn finish(rest: &Mutex<Option<Running>>, done: &Sender<Vec<SinkReport>>) {
    let running = rest.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Where a sink panics its trace lacks its end, and `verify` says so. Nobody may be there any more to be told.
    let _ = catch_unwind(AssertUnwindSafe(|| done.send(running.map(Running::finish).unwrap_or_default())));
}

impl Ending {
    /// How it ended; `None` if it has not by then: a sink is slow, or blocks.
    pub(crate) fn wait_until(&self, deadline: Instant) -> Option<Result<Summary, SessionError>> {
        let reports = match self.reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(reports) => reports,
            Err(RecvTimeoutError::Disconnected) => Vec::new(),
            Err(RecvTimeoutError::Timeout) => return None,
        };
        Some(Summary::new(self.session.clone(), reports, 0))
    }
}
