//! The peer: detects its protocol, and runs the session with it.

use super::collector::{Collector, Kept};
use super::connection::{Control, connect};
use super::greeting::{ask, no_relay};
use super::options::StreamOptions;
use super::queue::Queue;
use super::relay::Relay;
use super::session::{ConnectionError, Identity, NextStep};
use super::streams::Streams;
use rustix::event::PollFd;
use std::time::Instant;
use tracepoint_wire::relay::{Command, MAJOR, MINOR, MINOR_WITH_CHUNKS, Reply, ReturnCode, Version};
use tracepoint_wire::stream::Capabilities;

/// Minimum minor version of a relay that answers `GET_CONFIGURATION`.
const MINOR_WITH_CONFIGURATION: u32 = 12;

/// A session with a peer.
#[derive(Debug)]
pub(super) enum Peer {
    Relay(Box<Relay>),
    Collector(Box<Collector>),
    #[cfg(feature = "nats")]
    Nats(Box<super::nats::Nats>),
}

impl Peer {
    /// Connects and opens a session, which is number `connection` of this trace.
    pub(super) fn connect(
        (options, identity): (&StreamOptions, &Identity),
        (kept, queue): (&mut Kept, &Queue),
        #[cfg_attr(not(feature = "nats"), expect(unused_variables))] streams: &Streams,
        connection: u64,
        deadline: Instant,
    ) -> Result<Self, ConnectionError> {
        #[cfg(feature = "nats")]
        if let Some(broker) = &options.broker {
            let nats = super::nats::Nats::open(broker, (options, identity), (kept, queue), streams, deadline)?;
            return Ok(Self::Nats(Box::new(nats)));
        }
        let to = &options.destination;
        let mut control = Control::new(connect(to, to.control_port, deadline)?);
        let own = Version { major: MAJOR, minor: MINOR };
        let Reply::Version(version) = ask(&mut control, &Command::Version(own), MINOR, deadline)? else {
            return Err(no_relay("another answer than a version"));
        };
        if version.major != MAJOR || version.minor < MINOR_WITH_CHUNKS {
            let Version { major, minor } = version;
            return Err(ConnectionError::Final(format!(
                "the relay speaks version {major}.{minor}; 2.{MINOR_WITH_CHUNKS} is needed"
            )));
        }
        let minor = version.minor.min(MINOR);
        if !options.relay_only && minor >= MINOR_WITH_CONFIGURATION {
            let offer = Command::GetConfiguration { flags: Capabilities::new(options.udp, false).flags() };
            let answer = ask(&mut control, &offer, minor, deadline)?;
            let capabilities = match answer {
                Reply::Configuration { code: ReturnCode::Ok, flags } => Capabilities::of(flags),
                _ => None,
            };
            if let Some(capabilities) = capabilities {
                let collector = Collector::open(control, capabilities, (options, identity), (kept, queue), deadline)?;
                return Ok(Self::Collector(Box::new(collector)));
            }
        }
        if options.key.is_some() {
            return Err(ConnectionError::Final(
                "the peer speaks the protocol of stock relays, which has no shared key".to_owned(),
            ));
        }
        if options.udp {
            return Err(ConnectionError::Final(
                "the peer is a stock relay, which takes no data over UDP; stream over TCP".to_owned(),
            ));
        }
        Relay::open(control, minor, (options, identity), connection, deadline).map(|relay| Self::Relay(Box::new(relay)))
    }

    /// Returns the name that the peer gives itself.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Relay(_) => "relay",
            Self::Collector(collector) => collector.name(),
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.name(),
        }
    }

    /// Returns whether the peer has proved to accept packets. If so, a lost connection is retried soon.
    pub(super) fn takes_packets(&self) -> bool {
        match self {
            Self::Relay(_) | Self::Collector(_) => true,
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.has_stored(),
        }
    }

    /// Does everything that is possible without waiting.
    pub(super) fn advance(
        &mut self,
        queue: &Queue,
        (streams, kept): (&mut Streams, &mut Kept),
        now: Instant,
    ) -> Result<NextStep, ConnectionError> {
        match self {
            Self::Relay(relay) => relay.advance(queue, streams, now),
            Self::Collector(collector) => collector.advance(queue, (streams, kept), now),
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.advance(queue, (streams, kept)),
        }
    }

    /// Returns the sources to poll.
    pub(super) fn sources(&mut self) -> Vec<PollFd<'_>> {
        match self {
            Self::Relay(relay) => relay.sources(),
            Self::Collector(collector) => collector.sources(),
            #[cfg(feature = "nats")]
            Self::Nats(nats) => nats.sources(),
        }
    }

    /// Ends sending because the time is over: asks the peer which packets it has. Returns whether to wait for the answer.
    pub(super) fn give_up(&mut self, queue: &Queue, streams: &mut Streams) -> bool {
        match self {
            Self::Collector(collector) => collector.give_up(queue, streams),
            Self::Relay(_) => false,
            #[cfg(feature = "nats")]
            Self::Nats(_) => false,
        }
    }

    /// Handles the end of the connection: packets that cannot be sent again are lost.
    pub(super) fn abandon(self, queue: &Queue, streams: &mut Streams) {
        match self {
            Self::Relay(relay) => relay.abandon(queue, streams),
            // Unacknowledged packets are kept.
            Self::Collector(_) => {}
            #[cfg(feature = "nats")]
            Self::Nats(_) => {}
        }
    }
}
