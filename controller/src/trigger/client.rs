//! The other side of the notification socket: messages and their answers, and notifications.

use fileguard::GuardedFd;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::trigger::connection::{NOTIFY, connect_to, exchange, wait};
use tracepoint_session_io::trigger::{Decoder, Message, Notification, TriggerError, subscribe};

/// Maximum time that a listener may take to accept a subscriber.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The notifications of a listener, sent by the action `notify` of triggers.
///
/// ```no_run
/// use tracepoint_controller::trigger::Subscription;
///
/// let mut notifications = Subscription::new(None, Some("flight"))?;
/// while let Some(notification) = notifications.next()? {
///     println!("{}: {}", notification.trigger, notification.occurrence.condition);
/// }
/// # Ok::<(), tracepoint_controller::trigger::TriggerError>(())
/// ```
#[derive(Debug)]
pub struct Subscription {
    socket: GuardedFd<OwnedFd>,
    path: PathBuf,
    decoder: Decoder,
    received: VecDeque<Notification>,
}

impl Subscription {
    /// Subscribes to the notifications of a session, or of all sessions, with the listener at this socket; by default the socket of this
    /// user.
    ///
    /// # Errors
    ///
    /// [`TriggerError::NoListener`] if no listener runs; otherwise as the negative answers of [`trigger_fire`](super::trigger_fire).
    pub fn new(socket_path: Option<&Path>, session: Option<&str>) -> Result<Self, TriggerError> {
        let path = socket_path.map_or_else(|| RunDir::place().join(NOTIFY), Path::to_owned);
        let deadline = Instant::now() + SUBSCRIBE_TIMEOUT;
        let socket = connect_to(&path, deadline).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => TriggerError::NoListener(path.clone()),
            _ => TriggerError::socket(&path)(error),
        })?;
        match exchange(&socket, &subscribe(session), deadline) {
            Ok(0) => Ok(Self { socket, path, decoder: Decoder::default(), received: VecDeque::new() }),
            Ok(answer) => Err(TriggerError::answered(&path, answer)),
            Err(error) => Err(TriggerError::socket(&path)(error)),
        }
    }

    /// Waits for the next notification. `None` if the listener has ended.
    ///
    /// # Errors
    ///
    /// [`TriggerError::Socket`] if the socket cannot be read, or the received message is not a notification.
    #[expect(clippy::should_implement_trait, reason = "an error ends the subscription")]
    pub fn next(&mut self) -> Result<Option<Notification>, TriggerError> {
        loop {
            if let Some(notification) = self.received.pop_front() {
                return Ok(Some(notification));
            }
            if !self.receive().map_err(TriggerError::socket(&self.path))? {
                return Ok(None);
            }
            if self.received.is_empty() {
                wait(&self.socket, PollFlags::IN, None).map_err(TriggerError::socket(&self.path))?;
            }
        }
    }

    /// Reads the bytes that have arrived; returns `false` at the end.
    fn receive(&mut self) -> io::Result<bool> {
        let mut part = [0; 16 << 10];
        let mut input = match recv(self.socket.get()?, &mut part, RecvFlags::empty()) {
            Ok((0, _)) => return Ok(false),
            Ok((read, _)) => &part[..read],
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        };
        while let Some(message) = self.decoder.next(&mut input).map_err(io::Error::other)? {
            match message {
                Message::Notification(notification) => self.received.push_back(notification),
                other => return Err(io::Error::other(format!("it is no notification: {other:?}"))),
            }
        }
        Ok(true)
    }
}
