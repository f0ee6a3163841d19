//! A connection from a client that requests metrics. First its request is read, then its answer is sent; no operation blocks.

use rustix::event::{PollFd, PollFlags};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tracepoint_collector::prometheus::http::{LONGEST_REQUEST, Request};

/// Time limit for a request to arrive, and for the peer to take each part of an answer.
const TIME: Duration = Duration::from_secs(10);

/// The next step of the server for a connection.
pub(super) enum Step {
    /// No progress.
    Wait,
    /// Its request is complete.
    Answer(Request),
    /// The answer is sent, or the peer closed the connection.
    End,
}

pub(super) struct Connection {
    stream: TcpStream,
    pub(super) peer: SocketAddr,
    received: Vec<u8>,
    /// The unsent rest of the answer, once there is one.
    answer: Option<Vec<u8>>,
    pub(super) until: Instant,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, peer, received: Vec::new(), answer: None, until: Instant::now() + TIME })
    }

    /// True until its request is complete.
    pub(super) fn is_asking(&self) -> bool {
        self.answer.is_none()
    }

    pub(super) fn interest(&self) -> PollFd<'_> {
        PollFd::new(&self.stream, if self.is_asking() { PollFlags::IN } else { PollFlags::OUT })
    }

    /// Reads available data, or writes as much as possible.
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

    /// Queues this text for sending.
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

    /// The reason to close the connection at this time, if it has timed out.
    pub(super) fn late(&self, now: Instant) -> Option<&'static str> {
        let why = if self.is_asking() { "no complete request came" } else { "it does not take the answer" };
        (now >= self.until).then_some(why)
    }
}
