//! The end of a recording.

use super::ActiveSession;
use crate::session::{Ending, SessionError, Status, Summary};
use std::time::Instant;

impl ActiveSession {
    /// Ends the recording, if there is one. Its outputs are complete on return if its sinks finish before the deadline of the scan.
    pub(super) fn end(&mut self) {
        if self.begin_end() {
            self.wait_for_end(self.deadline);
        }
    }

    /// Disables the events and lets the sinks finish in the background. Returns `false` if nothing is recorded.
    pub(in crate::agent) fn begin_end(&mut self) -> bool {
        self.owner = None;
        self.ack.events = 0;
        self.budget.reset();
        let Some(recording) = self.recording.take() else { return false };
        self.ack.rings = None;
        self.ack.state_dumps = recording.state_dumps();
        self.ack.servers.clear();
        let before = std::mem::take(&mut self.last_status);
        let last_status = recording.status_at_once().unwrap_or(before);
        self.endings.push((recording.end(), last_status));
        true
    }

    /// Waits for endings until `deadline`; returns whether any has completed.
    pub(in crate::agent) fn wait_for_end(&mut self, deadline: Instant) -> bool {
        let before = self.endings.len();
        for (ending, last_status) in std::mem::take(&mut self.endings) {
            match ending.wait_until(deadline) {
                Some(ended) => self.add_ended(ended, &last_status),
                None => self.endings.push((ending, last_status)),
            }
        }
        self.endings.len() < before
    }

    /// Returns whether a recording is still ending.
    pub(in crate::agent) const fn is_ending(&self) -> bool {
        !self.endings.is_empty()
    }

    /// Takes the endings that no longer belong to the session.
    pub(in crate::agent) fn take_abandoned(&mut self) -> Vec<Ending> {
        std::mem::take(&mut self.abandoned)
    }

    /// Separates all endings from the session.
    pub(in crate::agent) fn abandon(&mut self) {
        self.abandoned.extend(self.endings.drain(..).map(|(ending, _)| ending));
    }

    fn add_ended(&mut self, ended: Result<Summary, SessionError>, last_status: &Status) {
        let summary = match ended {
            Ok(summary) => Some(summary),
            Err(error) => {
                self.end_error = Some(error.to_string());
                if let SessionError::Sinks { summary, .. } = error { Some(*summary) } else { None }
            }
        };
        if let Some((account, bytes)) = summary.as_ref().and_then(|summary| Some((summary.account()?, summary.bytes))) {
            self.ended_counters.add_account(account, bytes);
            self.ended_channels.add_account(account);
        } else {
            self.end_error = Some("ending the recording panicked; check the trace with `tracectl verify`".to_owned());
            if let Some(account) = last_status.account() {
                self.ended_counters.add_account(account, last_status.bytes());
                self.ended_channels.add_account(account);
            }
        }
    }
}
