//! Why a session is not applied as requested, and when the agent retries.

use crate::channel_room::has_room;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The shortest and longest time before a failed session is retried.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
/// Attempts that fail take this part of the time, at most.
const PART: u32 = 200;

/// What may help a session that could not be applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Retry {
    /// What has woken the agent may. It also wakes up by itself, at intervals that grow.
    #[default]
    WhenAwake,
    /// Time, as for a full disk: until the next interval is over, wake-ups for other reasons do not retry.
    Later,
    /// A session that ends in this process, and leaves room for so many channels.
    WithChannels(usize),
    /// Another version of the session only.
    Never,
}

/// The current errors of one session.
#[derive(Debug, Default)]
pub(super) struct CurrentErrors {
    /// Why the file could not be read at the last attempt.
    pub(super) read_error: Option<String>,
    /// Whether that was for lack of descriptors, which the file's writer does not notice.
    pub(super) lacks_descriptors: bool,
    /// Why the current file cannot be parsed; an earlier version stays in force.
    pub(super) parse_error: Option<String>,
    /// Why the parsed file could not be applied.
    apply_error: Option<String>,
    last_attempt: Option<Instant>,
    retry: Retry,
    /// After how long the agent wakes up to retry.
    timer: Duration,
}

impl CurrentErrors {
    /// Notes that the session could not be applied.
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

    /// Notes that a new version of the file was parsed.
    pub(super) fn parsed(&mut self) {
        self.parse_error = None;
        (self.retry, self.timer) = (Retry::WhenAwake, Duration::ZERO);
    }

    /// Whether a failed session should be applied again now.
    pub(super) fn is_retry_due(&self) -> bool {
        self.apply_error.is_some()
            && match self.retry {
                Retry::WhenAwake => true,
                Retry::Later => self.last_attempt.is_none_or(|time| time.elapsed() >= self.timer),
                Retry::WithChannels(channels) => has_room(channels),
                Retry::Never => false,
            }
    }

    /// When the agent is to retry by itself, if the session failed: when the interval is over, or at once if it waited for channels, and there
    /// are so many now. If there are not, the next channel that is closed wakes the agent. A session whose file cannot be read is not tried.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        self.apply_error.as_ref().filter(|_| self.read_error.is_none())?;
        let elapsed = self.last_attempt.map_or(Duration::MAX, |time| time.elapsed());
        match self.retry {
            Retry::WhenAwake | Retry::Later => Some(self.timer.saturating_sub(elapsed)),
            Retry::WithChannels(channels) => has_room(channels).then_some(Duration::ZERO),
            Retry::Never => None,
        }
    }

    /// The error to acknowledge.
    pub(super) fn error(&self) -> Option<&String> {
        self.read_error.as_ref().or(self.parse_error.as_ref()).or(self.apply_error.as_ref())
    }
}

/// Bounds the processor time that attempts of all sessions take together: each pauses the next ones in proportion to its length.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    next: Cell<Option<Instant>>,
}

impl Attempts {
    /// How long no session is retried yet.
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
        // One that there is room for by now waits for nothing but a pause of all attempts.
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
