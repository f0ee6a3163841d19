//! The conditions that end a recording.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_control::Application;

/// Ends a recording when its time is over, when the process or the command has ended, or on a signal.
pub(super) struct StopCondition {
    began: Instant,
    duration: Option<Duration>,
    process: Option<Application>,
    interrupt: Interrupt,
}

impl StopCondition {
    /// From here on Ctrl-C ends the recording instead of this program.
    pub(super) fn new(duration: Option<Duration>, process: Option<Application>) -> Result<Self, Failure> {
        Ok(Self { began: Instant::now(), duration, process, interrupt: Interrupt::always()? })
    }

    /// Waits for `tick` at most; whether the recording is to end.
    pub(super) fn is_reached(&mut self, child: Option<&mut Child>, tick: Duration) -> Result<bool, Failure> {
        let left = self.duration.map_or(tick, |duration| duration.saturating_sub(self.began.elapsed()));
        thread::sleep(left.min(tick));
        let over = self.duration.is_some_and(|duration| self.began.elapsed() >= duration);
        let gone = self.process.as_ref().is_some_and(|process| !process.is_alive());
        let ended = child.map_or(Ok(None), Child::try_wait)?.is_some();
        Ok(self.interrupt.is_requested() || over || gone || ended)
    }
}
