//! The conditions that end a recording.

use crate::failure::Failure;
use crate::interrupt::WaitingInterrupt;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_control::Application;

/// Ends a recording when its time is over, when the process or the command has ended, or on a signal.
pub(super) struct StopCondition {
    began: Instant,
    duration: Option<Duration>,
    process: Option<Application>,
    interrupt: WaitingInterrupt,
}

impl StopCondition {
    /// From here on Ctrl-C ends the recording instead of this program.
    pub(super) fn new(duration: Option<Duration>, process: Option<Application>) -> Result<Self, Failure> {
        Ok(Self { began: Instant::now(), duration, process, interrupt: WaitingInterrupt::new()? })
    }

    /// A function that ends the present wait, or the next one.
    pub(super) fn waker(&self) -> Result<impl Fn() + Send + use<>, Failure> {
        self.interrupt.waker()
    }

    /// From here on the recording ends as by a signal when `wait` returns.
    pub(super) fn end_after(&self, wait: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let request = self.interrupt.requester()?;
        thread::Builder::new().spawn(move || {
            wait();
            request();
        })?;
        Ok(())
    }

    /// Whether a signal ended the recording.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// Waits for `most` at most, and less on a signal, when a child has ended, or when a [waker](Self::waker) is called; whether the
    /// recording is to end.
    pub(super) fn is_reached(&mut self, child: Option<&mut Child>, most: Duration) -> Result<bool, Failure> {
        let left = self.duration.map_or(most, |duration| duration.saturating_sub(self.began.elapsed()));
        self.interrupt.wait(left.min(most));
        let over = self.duration.is_some_and(|duration| self.began.elapsed() >= duration);
        let gone = self.process.as_ref().is_some_and(|process| !process.is_alive());
        let ended = child.map_or(Ok(None), Child::try_wait)?.is_some();
        Ok(self.interrupt.is_requested() || over || gone || ended)
    }
}
