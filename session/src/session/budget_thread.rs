//! Checks the budget of a session that was built in code; the agent does the same for sessions in files.

use super::SessionState;
use crate::budget;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint_sinks::own_thread;

/// The thread. Dropping it ends the thread.
pub(super) struct BudgetThread(#[expect(dead_code, reason = "dropping it wakes and ends the thread")] Sender<()>);

impl BudgetThread {
    pub(super) fn start(state: &Arc<Mutex<SessionState>>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        // A weak reference: the session ends when its owner drops it, regardless of this thread.
        let state = Arc::downgrade(state);
        let body = move || {
            while stopped.recv_timeout(budget::TICK) == Err(RecvTimeoutError::Timeout) {
                let Some(state) = state.upgrade() else { break };
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    state.lock().unwrap_or_else(PoisonError::into_inner).check_budget();
                }));
            }
        };
        own_thread::spawn("tracepoint-budget", body)?;
        Ok(Self(stop))
    }
}
