//! The end of a recording.

use super::{Applied, Sinks};
use crate::session::{SessionError, Status, Summary};
use std::time::{Duration, Instant};

/// How long the agent waits for the sinks of a session that ends: others are waiting for it, and whoever ends it does for 2 s.
const END: Duration = Duration::from_millis(1500);

impl Applied {
    /// Ends the recording, if there is one: its outputs are complete then, if no sink blocks.
    pub(in crate::agent) fn end(&mut self) {
        self.begin_to_end();
        self.wait_for_end(END);
    }

    /// Switches the events off; what is left for the sinks is on its way.
    pub(in crate::agent) fn begin_to_end(&mut self) {
        self.owner = None;
        self.ack.events = 0;
        self.budget.begin_anew();
        let Some(recording) = self.recording.take() else { return };
        self.ack.rings = None;
        self.ack.state_dumps = recording.state_dumps();
        self.ack.servers.clear();
        self.sinks = Sinks::default();
        self.endings.push(recording.end());
    }

    /// Waits for what has begun to end: whether anything has by now.
    pub(in crate::agent) fn wait_for_end(&mut self, patience: Duration) -> bool {
        let (deadline, before) = (Instant::now() + patience, self.endings.len());
        for ending in std::mem::take(&mut self.endings) {
            match ending.wait(deadline.saturating_duration_since(Instant::now())) {
                Some(ended) => self.count(ended),
                None => self.endings.push(ending),
            }
        }
        self.endings.len() < before
    }

    /// Whether there is something to wait for.
    pub(in crate::agent) const fn is_ending(&self) -> bool {
        !self.endings.is_empty()
    }

    fn count(&mut self, ended: Result<Summary, SessionError>) {
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
        }
        // It is among those before now, if it was not another recording's.
        if self.recording.is_none() {
            self.seen = Status::default();
        }
    }
}
