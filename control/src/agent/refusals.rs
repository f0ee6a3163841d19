//! What could not be done, for as long as it is so, and when it is tried again.

use std::time::{Duration, Instant};

/// The pause before what failed is tried again, at the first bell after it: the shortest and the longest.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);

/// Why a session is not applied as it is wanted.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The file could not be read just now.
    pub(super) unread: Option<String>,
    /// The file that is there cannot be understood: an earlier one counts.
    pub(super) misunderstood: Option<String>,
    /// It was understood, and could not be done.
    failed: Option<String>,
    tried: Option<Instant>,
    pause: Duration,
}

impl Refusals {
    /// What was wanted could not be done. Where it is room that is lacking it is not tried again at every bell.
    pub(super) fn fail(&mut self, error: String, patiently: bool) {
        self.failed = Some(error);
        self.tried = Some(Instant::now());
        self.pause = if patiently { (self.pause * 2).clamp(SHORTEST, LONGEST) } else { Duration::ZERO };
    }

    /// It was done, or something else is wanted now.
    pub(super) fn done(&mut self) {
        self.failed = None;
    }

    /// What counts from here on is another file.
    pub(super) fn understood(&mut self) {
        self.misunderstood = None;
        self.pause = Duration::ZERO;
    }

    /// Whether it is to be tried again: what could not be done may be possible now.
    pub(super) fn is_to_be_tried(&self) -> bool {
        self.failed.is_some() && self.tried.is_none_or(|tried| tried.elapsed() >= self.pause)
    }

    /// What is to be told.
    pub(super) fn error(&self) -> Option<&String> {
        self.unread.as_ref().or(self.misunderstood.as_ref()).or(self.failed.as_ref())
    }
}
