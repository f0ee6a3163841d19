//! The end of a recording.

use super::ActiveSession;
use crate::session::{Ending, SessionError, Status, Summary};
use std::time::Instant;

impl ActiveSession {
    /// Ends the recording, if there is one: its outputs are complete then, if its sinks take no longer than this look waits for them.
    pub(super) fn end(&mut self) {
        if self.begin_to_end() {
            self.wait_for_end(self.deadline);
        }
    }

    /// Switches the events off; what is left for the sinks is on its way. `false` if nothing is recorded.
    pub(in crate::agent) fn begin_to_end(&mut self) -> bool {
        self.owner = None;
        self.ack.events = 0;
        self.budget.begin_anew();
        let Some(recording) = self.recording.take() else { return false };
        self.ack.rings = None;
        self.ack.state_dumps = recording.state_dumps();
        self.ack.servers.clear();
        let before = std::mem::take(&mut self.seen);
        let seen = recording.status_at_once().unwrap_or(before);
        self.endings.push((recording.end(), seen));
        true
    }

    /// Waits for what has begun to end: whether anything has by now.
    pub(in crate::agent) fn wait_for_end(&mut self, deadline: Instant) -> bool {
        let before = self.endings.len();
        for (ending, seen) in std::mem::take(&mut self.endings) {
            match ending.wait_until(deadline) {
                Some(ended) => self.count(ended, &seen),
                None => self.endings.push((ending, seen)),
            }
        }
        self.endings.len() < before
    }

    /// Whether there is something to wait for.
    pub(in crate::agent) const fn is_ending(&self) -> bool {
        !self.endings.is_empty()
    }

    /// What has begun to end, and is nothing of the session's any more.
    pub(in crate::agent) fn abandoned(&mut self) -> Vec<Ending> {
        std::mem::take(&mut self.abandoned)
    }

    /// From here on that is all of it.
    pub(in crate::agent) fn abandon(&mut self) {
        self.abandoned.extend(self.endings.drain(..).map(|(ending, _)| ending));
    }

    fn count(&mut self, ended: Result<Summary, SessionError>, seen: &Status) {
        let summary = match ended {
            Ok(summary) => Some(summary),
            Err(error) => {
                self.ended = Some(error.to_string());
                if let SessionError::Sinks { summary, .. } = error { Some(*summary) } else { None }
            }
        };
        if let Some((account, bytes)) = summary.as_ref().and_then(|summary| Some((summary.account()?, summary.bytes))) {
            self.before.add_account(account, bytes);
            self.channels_before.add_account(account);
        } else {
            self.ended =
                Some("the end of the recording panicked; `tracectl verify` tells what is in the trace".to_owned());
            if let Some(account) = seen.account() {
                self.before.add_account(account, seen.bytes());
                self.channels_before.add_account(account);
            }
        }
    }
}
