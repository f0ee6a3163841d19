//! A connection that asks for metrics: its request comes, and then its answer is taken. It never waits.

use nix::poll::{PollFd, PollFlags};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tracepoint_collector::prometheus::http::{LONGEST_REQUEST, Request};

/// How long a request may take to arrive, and each part of an answer to be taken.
const TIME: Duration = Duration::from_secs(10);

/// What is to be done for a connection.
pub(super) enum Step {
    /// It has nothing new.
    Wait,
    /// Its request is complete.
    Answer(Request),
    /// The answer is sent, or the peer has closed the connection.
    End,
}

pub(super) struct Connection {
    stream: TcpStream,
    pub(super) peer: SocketAddr,
    received: Vec<u8>,
    /// The rest of the answer, once there is one.
    answer: Option<Vec<u8>>,
    pub(super) until: Instant,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, peer, received: Vec::new(), answer: None, until: Instant::now() + TIME })
    }

    /// Whether its request is not complete.
    pub(super) fn is_asking(&self) -> bool {
        self.answer.is_none()
    }

    pub(super) fn interest(&self) -> PollFd<'_> {
        PollFd::new(self.stream.as_fd(), if self.is_asking() { PollFlags::POLLIN } else { PollFlags::POLLOUT })
    }

    /// Takes what has come, or sends what can be sent.
    pub(super) fn step(&mut self) -> io::Result<Step> {
        let done = if self.answer.is_some() { self.send() } else { self.receive() };
        match done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Step::Wait),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Step::Wait),
            done => done,
        }
    }

    fn receive(&mut self) -> io::Result<Step> {
        loop {
            if let Some(request) = Request::parse(&self.received) {
                return Ok(Step::Answer(request));
            }
            if self.received.len() > LONGEST_REQUEST {
                return Err(io::Error::other("its request is too long"));
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes)? {
                0 => return Ok(Step::End),
                count => self.received.extend(&bytes[..count]),
            }
        }
    }

    /// Has this text sent.
    pub(super) fn answer(&mut self, text: String) {
        self.answer = Some(text.into_bytes());
        self.until = Instant::now() + TIME;
    }

    fn send(&mut self) -> io::Result<Step> {
        let Some(rest) = &mut self.answer else { return Ok(Step::Wait) };
        while !rest.is_empty() {
            let count = self.stream.write(rest)?;
            rest.drain(..count);
            self.until = Instant::now() + TIME;
        }
        Ok(Step::End)
    }

    /// Why it is ended at this time, if it is.
    pub(super) fn late(&self, now: Instant) -> Option<&'static str> {
        let why = if self.is_asking() { "no complete request came" } else { "it does not take the answer" };
        (now >= self.until).then_some(why)
    }
}
