//! When it is enough.

use crate::failure::Failure;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tracepoint_control::Application;

/// What ends the recording.
pub(super) struct End {
    began: Instant,
    duration: Option<Duration>,
    process: Option<Application>,
    interrupted: Receiver<()>,
}

impl End {
    /// From here on Ctrl-C ends the recording, and not this program.
    pub(super) fn new(duration: Option<Duration>, process: Option<Application>) -> Result<Self, Failure> {
        let (interrupt, interrupted) = channel();
        let handler = move || {
            // The second one comes when nobody waits any more.
            let _ = interrupt.send(());
        };
        ctrlc::set_handler(handler)
            .map_err(|error| Failure::Senseless(format!("cannot wait for Ctrl-C: {error}; name a `--duration`")))?;
        Ok(Self { began: Instant::now(), duration, process, interrupted })
    }

    /// Waits for `tick` at most; whether it is enough.
    pub(super) fn is_reached(&mut self, child: Option<&mut Child>, tick: Duration) -> Result<bool, Failure> {
        let left = self.duration.map_or(tick, |duration| duration.saturating_sub(self.began.elapsed()));
        if self.interrupted.recv_timeout(left.min(tick)) != Err(RecvTimeoutError::Timeout) {
            return Ok(true);
        }
        let over = self.duration.is_some_and(|duration| self.began.elapsed() >= duration);
        let gone = self.process.as_ref().is_some_and(|process| !process.is_alive());
        let ended = child.map_or(Ok(None), Child::try_wait)?.is_some();
        Ok(over || gone || ended)
    }
}
