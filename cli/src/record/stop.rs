//! The conditions that end a recording.

use crate::failure::Failure;
use crate::interrupt::WaitingInterrupt;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_controller::Application;

/// Ends a recording after a given time, when the process or the command has ended, or on a signal.
pub(super) struct StopCondition {
    began: Instant,
    duration: Option<Duration>,
    process: Option<Application>,
    interrupt: WaitingInterrupt,
}

impl StopCondition {
    /// From now on, Ctrl-C ends the recording instead of this program.
    pub(super) fn new(duration: Option<Duration>, process: Option<Application>) -> Result<Self, Failure> {
        Ok(Self { began: Instant::now(), duration, process, interrupt: WaitingInterrupt::new()? })
    }

    /// Returns a function that ends the current wait, or else the next one.
    pub(super) fn waker(&self) -> Result<impl Fn() + Send + use<>, Failure> {
        self.interrupt.waker()
    }

    /// Starts a thread that runs `wait`; when it returns, the recording ends as on a signal.
    pub(super) fn end_after(&self, wait: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let request = self.interrupt.requester()?;
        thread::Builder::new().spawn(move || {
            wait();
            request();
        })?;
        Ok(())
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt.is_requested()
    }

    /// Waits for at most `most`, less on a signal, the end of a child, or a call of a [waker](Self::waker). Returns true if the
    /// recording must end.
    pub(super) fn is_reached(&mut self, child: Option<&mut Child>, most: Duration) -> Result<bool, Failure> {
        let left = self.duration.map_or(most, |duration| duration.saturating_sub(self.began.elapsed()));
        self.interrupt.wait(left.min(most));
        let over = self.duration.is_some_and(|duration| self.began.elapsed() >= duration);
        let gone = self.process.as_ref().is_some_and(|process| !process.is_alive());
        let ended = child.map_or(Ok(None), Child::try_wait)?.is_some();
        Ok(self.interrupt.is_requested() || over || gone || ended)
    }
}
