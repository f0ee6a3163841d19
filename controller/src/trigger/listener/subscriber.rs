//! A client that receives notifications.
//!
//! It is served as fast as it reads. Up to [`MAX_WAITING`] bytes wait for it, in addition to those in the socket's buffer. If there is no
//! space for more, notifications are left out and counted, and the next one that it receives contains their number. A subscriber that never
//! reads therefore costs only that memory. It must not send anything: its connection is closed if it does.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::OwnedFd;
use tracepoint_session_io::trigger::Notification;

/// Maximum number of bytes that wait for a subscriber.
const MAX_WAITING: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) fd: OwnedFd,
    /// The session whose notifications it receives; `None` for all.
    session: Option<String>,
    waiting: Vec<u8>,
    /// Number of notifications that were left out since the last one.
    missed: u64,
}

impl Subscriber {
    /// Creates the subscriber from a client, and the bytes to write first.
    pub(super) const fn new(fd: OwnedFd, session: Option<String>, first: Vec<u8>) -> Self {
        Self { fd, session, waiting: first, missed: 0 }
    }

    pub(super) fn waits_to_write(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends a notification if it is subscribed to it, as far as possible without blocking; returns `false` if it has disconnected.
    pub(super) fn notify(&mut self, notification: &Notification) -> bool {
        if self.session.as_ref().is_some_and(|session| *session != notification.session) {
            return true;
        }
        let missed = self.missed;
        let mut notification = notification.clone();
        notification.missed = missed;
        let message = notification.to_message();
        if self.waiting.len() + message.len() > MAX_WAITING {
            self.missed += 1;
            return true;
        }
        self.missed = 0;
        self.waiting.extend(message);
        self.write()
    }

    /// Writes as much as fits into the socket's buffer; returns `false` if the subscriber has disconnected.
    pub(super) fn write(&mut self) -> bool {
        while !self.waiting.is_empty() {
            match send(&self.fd, &self.waiting, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.waiting.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(errno) => return errno == Errno::AGAIN,
            }
        }
        true
    }

    /// Continues after its socket became ready; returns `false` if it has disconnected, or has sent something.
    pub(super) fn go_on(&mut self) -> bool {
        let is_silent = loop {
            match recv(&self.fd, &mut [0; 1], RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                result => break result == Err(Errno::AGAIN),
            }
        };
        is_silent && self.write()
    }
}
