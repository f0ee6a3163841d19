//! Why a session is not applied as requested, and when the agent retries.

use std::time::{Duration, Instant};

/// The shortest and longest time before a failed session is retried.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);

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
    /// How long a wake-up for another reason does not retry.
    pause: Duration,
    /// After how long the agent wakes up to retry.
    timer: Duration,
    /// Whether a retry would fail in the same way.
    is_final: bool,
}

impl CurrentErrors {
    /// Notes that the session could not be applied. The agent retries by itself, at intervals that grow. Until then, with `backoff`, for
    /// errors such as a full disk, wake-ups for other reasons do not retry; without, the next one does.
    pub(super) fn fail(&mut self, error: String, backoff: bool) {
        (self.apply_error, self.is_final) = (Some(error), false);
        self.last_attempt = Some(Instant::now());
        self.timer = (self.timer * 2).clamp(SHORTEST, LONGEST);
        self.pause = if backoff { self.timer } else { Duration::ZERO };
    }

    /// Notes that this program cannot apply this version of the session.
    pub(super) fn refuse(&mut self, error: String) {
        (self.apply_error, self.is_final) = (Some(error), true);
    }

    /// Clears the error of the last attempt: it succeeded, or a new version replaces it.
    pub(super) fn clear_apply_error(&mut self) {
        self.apply_error = None;
    }

    /// Notes that a new version of the file was parsed.
    pub(super) fn parsed(&mut self) {
        self.parse_error = None;
        (self.pause, self.timer) = (Duration::ZERO, Duration::ZERO);
    }

    /// Whether a failed session should be applied again now.
    pub(super) fn is_retry_due(&self) -> bool {
        self.apply_error.is_some()
            && !self.is_final
            && self.last_attempt.is_none_or(|time| time.elapsed() >= self.pause)
    }

    /// When the agent is to retry by itself, if the session failed.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        let elapsed = self.last_attempt.map_or(Duration::MAX, |time| time.elapsed());
        self.apply_error.as_ref().filter(|_| !self.is_final).map(|_| self.timer.saturating_sub(elapsed))
    }

    /// The error to acknowledge.
    pub(super) fn error(&self) -> Option<&String> {
        self.read_error.as_ref().or(self.parse_error.as_ref()).or(self.apply_error.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_was_built_without_is_not_tried_again() {
        let mut errors = CurrentErrors::default();
        errors.fail("a full disk".to_owned(), false);
        assert!(errors.is_retry_due() && errors.retry_in().is_some());
        errors.refuse("no such sink".to_owned());
        assert!(!errors.is_retry_due() && errors.retry_in().is_none());
        assert_eq!(errors.error().map(String::as_str), Some("no such sink"));
        errors.clear_apply_error();
        errors.fail("a full disk".to_owned(), false);
        assert!(errors.is_retry_due(), "another version of the session may fail otherwise");
    }
}
