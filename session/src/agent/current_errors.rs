//! The errors of applying a session, and the time of the agent's next retry.

use crate::channel_room::has_room;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Minimum and maximum time before a failed session is retried.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
/// Failing attempts take at most one part in this many of the time.
const PART: u32 = 200;

/// The event after which a failed session may succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Retry {
    /// Whatever has woken the agent. The agent also wakes up by itself, at increasing intervals.
    #[default]
    WhenAwake,
    /// Time, as for a full disk: until the next interval has passed, wake-ups for other reasons do not retry.
    Later,
    /// The end of another session in this process, which frees this number of channels.
    WithChannels(usize),
    /// Only another version of the session.
    Never,
}

/// The current errors of one session.
#[derive(Debug, Default)]
pub(super) struct CurrentErrors {
    /// The reason why the file could not be read at the last attempt.
    pub(super) read_error: Option<String>,
    /// True if the cause was a lack of descriptors, which the file's writer does not notice.
    pub(super) lacks_descriptors: bool,
    /// The reason why the current file cannot be parsed; an earlier version stays in force.
    pub(super) parse_error: Option<String>,
    /// The reason why the parsed file could not be applied.
    apply_error: Option<String>,
    last_attempt: Option<Instant>,
    retry: Retry,
    /// The time after which the agent wakes up to retry.
    timer: Duration,
}

impl CurrentErrors {
    /// Records that the session could not be applied.
    pub(super) fn fail(&mut self, error: String, retry: Retry) {
        self.apply_error = Some(error);
        self.last_attempt = Some(Instant::now());
        self.timer = (self.timer * 2).clamp(SHORTEST, LONGEST);
        self.retry = retry;
    }

    /// Clears the error of the last attempt: it succeeded, or a new version replaces it.
    pub(super) fn clear_apply_error(&mut self) {
        self.apply_error = None;
    }

    /// Records that a new version of the file was parsed.
    pub(super) fn parsed(&mut self) {
        self.parse_error = None;
        (self.retry, self.timer) = (Retry::WhenAwake, Duration::ZERO);
    }

    /// Returns whether a failed session should be applied again now.
    pub(super) fn is_retry_due(&self) -> bool {
        self.apply_error.is_some()
            && match self.retry {
                Retry::WhenAwake => true,
                Retry::Later => self.last_attempt.is_none_or(|time| time.elapsed() >= self.timer),
                Retry::WithChannels(channels) => has_room(channels),
                Retry::Never => false,
            }
    }

    /// Returns the time until the agent retries by itself, if the session failed: the rest of the interval, or zero if it waited for
    /// channels and enough are free now. If not, the next closed channel wakes the agent. A session whose file cannot be read is not
    /// retried.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        self.apply_error.as_ref().filter(|_| self.read_error.is_none())?;
        let elapsed = self.last_attempt.map_or(Duration::MAX, |time| time.elapsed());
        match self.retry {
            Retry::WhenAwake | Retry::Later => Some(self.timer.saturating_sub(elapsed)),
            Retry::WithChannels(channels) => has_room(channels).then_some(Duration::ZERO),
            Retry::Never => None,
        }
    }

    /// Returns the error to acknowledge.
    pub(super) fn error(&self) -> Option<&String> {
        self.read_error.as_ref().or(self.parse_error.as_ref()).or(self.apply_error.as_ref())
    }
}

/// Limits the processor time of the attempts of all sessions together: after each attempt, the next ones pause in proportion to its
/// duration.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    next: Cell<Option<Instant>>,
}

impl Attempts {
    /// Returns the time during which no session is retried.
    pub(super) fn pause(&self) -> Duration {
        self.next.get().map_or(Duration::ZERO, |next| next.saturating_duration_since(Instant::now()))
    }

    /// Counts an attempt that began at `began`.
    pub(super) fn add(&self, began: Instant) {
        self.next.set(Some(Instant::now() + began.elapsed() * PART));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_core::channel::MAX_OPEN;

    #[test]
    fn a_failed_session_is_tried_again_when_that_may_help() {
        let mut errors = CurrentErrors::default();
        errors.fail("no thread".to_owned(), Retry::WhenAwake);
        assert!(errors.is_retry_due() && errors.retry_in().is_some());
        errors.fail("a full disk".to_owned(), Retry::Later);
        assert!(!errors.is_retry_due() && errors.retry_in().is_some());
        errors.fail("no such sink".to_owned(), Retry::Never);
        assert!(!errors.is_retry_due() && errors.retry_in().is_none());
        assert_eq!(errors.error().map(String::as_str), Some("no such sink"));
        // A session whose channels are free by now waits only for a pause of all attempts.
        errors.fail("no channel".to_owned(), Retry::WithChannels(1));
        assert!(errors.is_retry_due() && errors.retry_in() == Some(Duration::ZERO));
        errors.fail("no channel".to_owned(), Retry::WithChannels(MAX_OPEN + 1));
        assert!(!errors.is_retry_due() && errors.retry_in().is_none());
        errors.fail("no such sink".to_owned(), Retry::Never);
        errors.clear_apply_error();
        errors.fail("no thread".to_owned(), Retry::WhenAwake);
        assert!(errors.is_retry_due(), "another version of the session may fail otherwise");
    }
}
