//! Requests to end: Ctrl-C, and the signals with the same meaning.

use crate::failure::Failure;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set once the user has asked this program to end.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// The same, for a thread that waits for the request or for the end of a child.
#[derive(Debug)]
pub(crate) struct WaitingInterrupt {
    interrupt: Interrupt,
    /// Receives a byte for each signal, and for each call of a waker.
    signals: UnixStream,
    wakes: UnixStream,
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

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Handles each SIGINT and SIGTERM as a request, for a program that must notify its peers before it ends.
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

    /// Clears pending requests. Returns true if there were any.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl WaitingInterrupt {
    /// Handles every SIGINT, SIGTERM and SIGHUP as a request, for a program that must clean up before it ends. Also waits for children.
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::with(&[SIGCHLD])
    }

    /// The same, without waiting for children.
    pub(crate) fn without_children() -> Result<Self, Failure> {
        Self::with(&[])
    }

    fn with(more: &[i32]) -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        let register = || -> io::Result<[UnixStream; 2]> {
            let (signals, wakes) = UnixStream::pair()?;
            // If the buffer is full, the unread bytes wake the reader anyway.
            wakes.set_nonblocking(true)?;
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                flag::register(signal, Arc::clone(&requested))?;
                pipe::register(signal, wakes.try_clone()?)?;
            }
            for signal in more {
                pipe::register(*signal, wakes.try_clone()?)?;
            }
            Ok([signals, wakes])
        };
        let [signals, wakes] = register().map_err(Failure::Signal)?;
        Ok(Self { interrupt: Interrupt(requested), signals, wakes })
    }

    /// Returns a function that ends the current wait, or else the next one.
    pub(crate) fn waker(&self) -> Result<impl Fn() + Send + use<>, Failure> {
        let wakes = self.wakes.try_clone().map_err(Failure::Signal)?;
        // Fails only if unread bytes fill the buffer, which wake the reader as well.
        Ok(move || drop((&wakes).write(&[0])))
    }

    /// Returns a function with the effect of a signal.
    pub(crate) fn requester(&self) -> Result<impl FnOnce() + Send + use<>, Failure> {
        let (requested, wake) = (self.interrupt.flag(), self.waker()?);
        Ok(move || {
            requested.store(true, Ordering::Relaxed);
            wake();
        })
    }

    /// Waits until a signal arrives, a child has ended, or a [waker](Self::waker) is called, for at most `time`.
    pub(crate) fn wait(&mut self, time: Duration) {
        // A timeout of zero is an error, and means no timeout to the system.
        let timeout = self.signals.set_read_timeout(Some(time.max(Duration::from_micros(1))));
        // The caller checks for itself why the wait ended.
        let _ = timeout.and_then(|()| self.signals.read(&mut [0; 64]));
    }

    /// Becomes readable after a signal; for a thread that also waits for other things.
    pub(crate) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.interrupt.is_requested()
    }
}
