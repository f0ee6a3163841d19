//! Serves metrics over HTTP, one request after the other.

use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::WaitingInterrupt;
use crate::message;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tracepoint_collector::prometheus::Metrics;
use tracepoint_collector::prometheus::http::{LONGEST_REQUEST, Request};

/// How long a request may take to arrive, and an answer to be taken: other requests wait meanwhile.
const TIME: Duration = Duration::from_secs(2);

/// Parses `PORT` or `ADDRESS:PORT`.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    port.or_else(|_| text.parse()).map_err(|_| {
        "expected a port or an address with a port, for example `9464`, `192.0.2.7:9464` or `[::1]:9464`".to_owned()
    })
}

/// Answers requests with `metrics` until Ctrl-C. Where they cannot be had, the answer is an error, and the next request tries again.
pub(super) fn serve(address: SocketAddr, metrics: impl Fn() -> Result<Metrics, Failure>) -> VerbResult {
    let interrupt = WaitingInterrupt::without_children()?;
    let failed = |error: io::Error| Failure::Refused(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    message::note(&format!("serving on http://{}/metrics", listener.local_addr().map_err(failed)?));
    while !interrupt.is_requested() {
        match listener.accept() {
            Ok((stream, peer)) => {
                if let Err(error) = answer(stream, &metrics) {
                    message::note(&format!("{peer} was not answered: {error}"));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let events = [listener.as_fd(), interrupt.signals()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
                // A signal may end it as well.
                let _ = poll(&mut { events }, PollTimeout::NONE);
            }
            // A connection that has ended already, or there are no descriptors now.
            Err(error) => {
                message::note(&format!("a request is not answered: {error}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
    Ok(Outcome::Success)
}

fn answer(mut stream: TcpStream, metrics: impl Fn() -> Result<Metrics, Failure>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(TIME))?;
    let until = Instant::now() + TIME;
    let mut received = Vec::new();
    let request = loop {
        if let Some(request) = Request::parse(&received) {
            break request;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || received.len() > LONGEST_REQUEST {
            return Err(io::Error::other("no complete request came"));
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            len => received.extend(&bytes[..len]),
        }
    };
    if let Some(refusal) = request.refusal() {
        return stream.write_all(refusal.as_bytes());
    }
    match metrics() {
        Ok(metrics) => stream.write_all(request.reply(metrics).as_bytes()),
        Err(error) => {
            let text = error.to_string();
            stream.write_all(request.failure(&text).as_bytes())?;
            Err(io::Error::other(text))
        }
    }
}
