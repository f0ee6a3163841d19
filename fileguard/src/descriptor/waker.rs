//! Wakes a thread that sleeps in `poll`.

use super::guarded_fd::GuardedFd;
use super::retry::{pause, retried};
use rustix::fs::OFlags;
use rustix::io::{read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Wakes a thread that sleeps in `poll`, using a pipe.
///
/// An eventfd would need one descriptor less, but all eventfds share an inode, so an eventfd of the library cannot be distinguished from one of the
/// program. A pipe also wakes its reader when the program closes the writing end: the thread notices at once that its descriptors are gone.
///
/// If the program has closed the pipe, the next call creates another one.
#[derive(Debug)]
pub struct Waker(Mutex<Arc<PipeEnds>>);

#[derive(Debug)]
struct PipeEnds {
    read: GuardedFd<OwnedFd>,
    write: GuardedFd<OwnedFd>,
}

impl PipeEnds {
    fn new() -> io::Result<Arc<Self>> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (read, write) = (GuardedFd::opened(read, OFlags::NONBLOCK), GuardedFd::opened(write, OFlags::NONBLOCK));
        Ok(Arc::new(Self { read: read?, write: write? }))
    }

    fn are_open(&self) -> bool {
        self.read.is_open() && self.write.is_open()
    }

    fn wake(&self) {
        if let Ok(end) = self.write.get() {
            // A full pipe means that the thread has been woken already.
            let _ = write(end, &[1]);
        }
    }
}

impl Waker {
    /// Creates the pipe.
    ///
    /// # Errors
    ///
    /// If the process cannot have two more descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Mutex::new(PipeEnds::new()?)))
    }

    /// Wakes the thread, or lets its next `poll` return at once.
    pub fn wake(&self) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.wake();
        if !ends.are_open() {
            // Without descriptors for another pipe, the thread continues when its timeout expires.
            if let Ok(made) = retried(PipeEnds::new) {
                made.wake();
                *ends = made;
            }
        }
    }

    /// The reading end, which becomes readable, or reports a hang-up when the program has closed the pipe. Poll it immediately.
    ///
    /// # Errors
    ///
    /// If the program has closed the pipe, and no other one can be created.
    pub fn source(&self) -> io::Result<Source> {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !ends.are_open() {
            pause();
            *ends = retried(PipeEnds::new)?;
            // The former pipe may have contained a wake-up.
            ends.wake();
        }
        Ok(Source(Arc::clone(&ends)))
    }

    /// Returns whether the pipe is still open.
    pub fn is_open(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).are_open()
    }

    /// The number of the writing end.
    #[cfg(test)]
    pub(crate) fn written(&self) -> std::os::fd::RawFd {
        use std::os::fd::AsRawFd;
        let ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.write.held().expect("it is held").as_raw_fd()
    }

    /// Empties the pipe; later calls of [`wake`](Self::wake) make it readable again.
    pub fn clear(&self) {
        let ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(end) = ends.read.get() {
            // Each wake-up is one byte, and the pipe does not block.
            while read(end, &mut [0; 64]).is_ok_and(|count| count == 64) {}
        }
    }
}

/// The reading end of the pipe.
#[derive(Debug)]
pub struct Source(Arc<PipeEnds>);

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.read.held().expect("taken by drop only").as_fd()
    }
}
