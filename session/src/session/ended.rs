//! The recordings of a session that have ended, or are ending because their sinks are slow or blocked.

use super::pending_summary::PendingSummary;
use super::recording::Recording;
use super::{SessionError, Status, Summary};
use std::time::Instant;
use tracepoint_run_dir::StateDumpStatus;
use tracepoint_run_dir::ack::{ChannelCounters, Counters};

/// The ended recordings of a session, and the sum of their counters.
#[derive(Debug, Default)]
pub(crate) struct EndedRecordings {
    /// Those whose sinks have not finished, each with its last status, which does not include the packets that the sinks have not yet taken.
    pub(crate) pending: Vec<(PendingSummary, Status)>,
    /// Pending recordings of a removed session of the same name.
    pub(crate) abandoned: Vec<PendingSummary>,
    /// The time until which the end of a recording waits for its sinks.
    pub(crate) deadline: Option<Instant>,
    /// The counters of the others, whose sinks have finished.
    pub(crate) counters: Counters,
    pub(crate) channels: ChannelCounters,
    /// The state dumps of the last one.
    pub(crate) state_dumps: Vec<StateDumpStatus>,
    /// The error with which the last one ended, since the last application.
    pub(crate) error: Option<String>,
}

impl EndedRecordings {
    /// Disables the events of a recording with this last status, and lets its sinks finish in the background.
    pub(super) fn begin(&mut self, recording: Recording, last_status: Status) {
        self.state_dumps = recording.state_dumps();
        self.pending.push((recording.end(), last_status));
    }

    /// Waits for the sinks until `deadline`; returns whether those of any recording have finished.
    pub(crate) fn wait_until(&mut self, deadline: Instant) -> bool {
        let before = self.pending.len();
        for (summary, last_status) in std::mem::take(&mut self.pending) {
            match summary.wait_until(deadline) {
                Some(ended) => self.add(ended, &last_status),
                None => self.pending.push((summary, last_status)),
            }
        }
        self.pending.len() < before
    }

    /// Waits for the sinks until `deadline`, and takes the recordings that are still pending.
    pub(crate) fn finish(&mut self, deadline: Instant) -> Vec<PendingSummary> {
        self.wait_until(deadline);
        self.take_pending()
    }

    /// Takes the pending recordings, which no longer belong to the session.
    fn take_pending(&mut self) -> Vec<PendingSummary> {
        let pending = self.pending.drain(..).map(|(summary, _)| summary);
        self.abandoned.drain(..).chain(pending).collect()
    }

    /// Forgets the recordings: another session has the name.
    pub(super) fn renew(&mut self) {
        *self = Self { abandoned: self.take_pending(), deadline: self.deadline, ..Self::default() };
    }

    fn add(&mut self, ended: Result<Summary, SessionError>, last_status: &Status) {
        let summary = match ended {
            Ok(summary) => Some(summary),
            Err(error) => {
                self.error = Some(error.to_string());
                if let SessionError::Sinks { summary, .. } = error { Some(*summary) } else { None }
            }
        };
        if let Some((account, bytes)) = summary.as_ref().and_then(|summary| Some((summary.account()?, summary.bytes))) {
            self.counters.add_account(account, bytes);
            self.channels.add_account(account);
        } else {
            self.error = Some("ending the recording panicked; check the trace with `tracectl verify`".to_owned());
            if let Some(account) = last_status.account() {
                self.counters.add_account(account, last_status.bytes());
                self.channels.add_account(account);
            }
        }
    }
}
