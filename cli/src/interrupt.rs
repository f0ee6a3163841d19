//! Requests to end: Ctrl-C and the signals that mean the same.

use crate::failure::Failure;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether the user has asked this program to end.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// The same, for a thread that waits for it or for the end of a child.
#[derive(Debug)]
pub(crate) struct WaitingInterrupt {
    interrupt: Interrupt,
    /// A byte arrives here for each signal.
    signals: UnixStream,
}

impl Interrupt {
    /// Handles SIGINT and SIGTERM as a request. The second signal ends the program at once.
    pub(crate) fn once() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&requested)).map_err(Failure::Signal)?;
            flag::register(signal, Arc::clone(&requested)).map_err(Failure::Signal)?;
        }
        Ok(Self(requested))
    }

    /// Handles each SIGINT and SIGTERM as a request: the program has to tell others of its end.
    pub(crate) fn each() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&requested)).map_err(Failure::Signal)?;
        }
        Ok(Self(requested))
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Forgets the requests so far. Returns whether there was one.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl WaitingInterrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP as a request, however many come: the program has to clean up first.
    pub(crate) fn new() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        let register = || -> io::Result<UnixStream> {
            let (signals, wakes) = UnixStream::pair()?;
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                flag::register(signal, Arc::clone(&requested))?;
                pipe::register(signal, wakes.try_clone()?)?;
            }
            pipe::register(SIGCHLD, wakes)?;
            Ok(signals)
        };
        let signals = register().map_err(Failure::Signal)?;
        Ok(Self { interrupt: Interrupt(requested), signals })
    }

    /// Waits until a signal arrives, or a child has ended, for at most `time`.
    pub(crate) fn wait(&mut self, time: Duration) {
        // A timeout of zero is an error, and means no timeout to the system.
        let timeout = self.signals.set_read_timeout(Some(time.max(Duration::from_micros(1))));
        // Whatever ends it, the caller looks for itself.
        let _ = timeout.and_then(|()| self.signals.read(&mut [0; 64]));
    }

    /// Can be read after a signal, for a thread that waits for other things as well.
    pub(crate) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.interrupt.is_requested()
    }
}
