//! A client and a server with a bad network between them, in a time of their own.

use super::link::{Link, Weather};
use super::server::{Plan, Server};
use std::time::Duration;
use tracepoint_reader::udp::{Client, Ending, Options, Report};

/// Nothing takes longer.
const LIMIT: Duration = Duration::from_secs(300);

pub struct World {
    pub client: Client,
    pub server: Server,
    pub there: Link,
    pub back: Link,
    pub now: Duration,
    pub reports: Vec<Report>,
}

impl World {
    pub fn new(seed: u64, options: Options, plan: Plan, weather: [Weather; 2]) -> Self {
        let [there, back] = weather;
        Self {
            client: Client::new(options, Duration::ZERO),
            server: Server::new(seed, plan),
            there: Link::new(seed ^ 1, there),
            back: Link::new(seed ^ 2, back),
            now: Duration::ZERO,
            reports: Vec::new(),
        }
    }

    /// Lets a millisecond pass.
    pub fn step(&mut self) {
        let now = self.now;
        let mut wakes = 0;
        while self.client.deadline().is_some_and(|deadline| deadline <= now) {
            self.client.wake(now);
            wakes += 1;
            assert!(wakes < 5, "the client is never done: {:?}", self.client);
        }
        while let Some(datagram) = self.client.outgoing() {
            self.there.send(&datagram, now);
        }
        while let Some(datagram) = self.there.take(now) {
            self.server.receive(&datagram, now);
        }
        self.server.wake(now);
        while let Some(datagram) = self.server.outgoing() {
            self.back.send(&datagram, now);
        }
        while let Some(datagram) = self.back.take(now) {
            self.client.receive(&datagram, now);
        }
        self.reports.extend(std::iter::from_fn(|| self.client.report()));
        self.now += Duration::from_millis(1);
    }

    /// Lets time pass until the client has come to an end.
    pub fn run(&mut self) -> Ending {
        loop {
            if let Some(ending) = self.client.ending() {
                return ending;
            }
            assert!(self.now < LIMIT, "the client hangs: {:?}", self.client);
            self.step();
        }
    }

    /// Lets time pass until the server is done with the client too.
    pub fn settle(&mut self) {
        while !self.server.is_idle() {
            assert!(self.now < LIMIT, "the server hangs: {:?}", self.server);
            self.step();
        }
    }
}
