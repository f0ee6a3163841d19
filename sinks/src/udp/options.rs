//! Options of the server.

use crate::error::SinkError;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_reader::secure_exec::secure;
use tracepoint_wire::udp::{SERVER_PORT, SERVER_PORT_VARIABLE};

/// Default limit on the bytes that wait for a client.
pub const DEFAULT_LIMIT: usize = 64 << 20;
/// Default rate in bytes per second to a client on this machine in the legacy layout.
pub const DEFAULT_LEGACY_RATE: u64 = 4 << 20;
/// Default rate in datagrams per second in the legacy layout. The default buffer of a socket (208 KiB) holds 256 small datagrams, 166 of 200 to 400
/// bytes and 92 longer ones: at least 18 ms of them, so that a client that reads that often loses none.
pub const DEFAULT_LEGACY_PACE: u32 = 4000;
/// Default rate in bytes per second to an allowed address of another machine in the legacy layout.
pub const DEFAULT_ALLOWED_RATE: u64 = 1 << 20;

/// Determines which events are dropped when the queue for the client is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropPolicy {
    /// The oldest: a client that connects late sees the end.
    #[default]
    Oldest,
    /// The newest: a client sees the beginning.
    Newest,
}

/// The content of a message in the legacy layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LegacyContent {
    /// The text of the event: name and fields.
    #[default]
    Text,
    /// The record of the event: header word and packed fields.
    Record,
}

/// Options of a UDP trace server. The default listens on `127.0.0.1`, at the port in `TRACE_SERVER_PORT`, else at 5556.
///
/// ```
/// use tracepoint_sinks::udp::{DropPolicy, UdpOptions};
///
/// let options = UdpOptions::default().address(([127, 0, 0, 1], 0).into()).limit(1 << 20).drops(DropPolicy::Newest);
/// ```
#[derive(Clone, Debug)]
pub struct UdpOptions {
    pub(super) address: Option<SocketAddr>,
    pub(super) limit: usize,
    pub(super) drops: DropPolicy,
    pub(super) content: LegacyContent,
    pub(super) batch: bool,
    pub(super) rate: Option<u64>,
    pub(super) legacy_rate: u64,
    pub(super) legacy_pace: u32,
    pub(super) trusts_loopback: bool,
    pub(super) allowed: Vec<IpAddr>,
    pub(super) allowed_rate: u64,
    pub(super) idle: Option<Duration>,
    pub(super) max_session: Option<Duration>,
    pub(super) client_timeout: Duration,
    pub(super) flush: Duration,
    pub(super) linger: Duration,
    pub(super) events_from: Option<PathBuf>,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            address: None,
            limit: DEFAULT_LIMIT,
            drops: DropPolicy::Oldest,
            content: LegacyContent::Text,
            batch: true,
            rate: None,
            legacy_rate: DEFAULT_LEGACY_RATE,
            legacy_pace: DEFAULT_LEGACY_PACE,
            trusts_loopback: true,
            allowed: Vec::new(),
            allowed_rate: DEFAULT_ALLOWED_RATE,
            idle: None,
            max_session: None,
            client_timeout: Duration::from_secs(5),
            flush: Duration::from_secs(10),
            linger: Duration::ZERO,
            events_from: None,
        }
    }
}

impl<A: Into<SocketAddr>> From<A> for UdpOptions {
    /// Returns the default options, with this address.
    fn from(address: A) -> Self {
        Self { address: Some(address.into()), ..Self::default() }
    }
}

/// Returns the port in the environment variable `TRACE_SERVER_PORT`, or 5556. A program that was started with elevated rights (set-user-ID,
/// set-group-ID, file capabilities) ignores the variable: its caller could choose a port below 1024.
///
/// # Errors
///
/// If the variable does not contain a port.
pub fn port_from_environment() -> Result<u16, SinkError> {
    let Some(set) = std::env::var_os(SERVER_PORT_VARIABLE).filter(|_| !secure()) else { return Ok(SERVER_PORT) };
    set.to_str().and_then(|port| port.trim().parse().ok()).ok_or_else(|| {
        let reason = format!(
            "the environment variable {SERVER_PORT_VARIABLE} is `{}`; set it to a port from 0 to 65535 (0: any free one), or unset it",
            set.display()
        );
        SinkError::new("find the port of the UDP server", io::Error::new(io::ErrorKind::InvalidInput, reason))
    })
}

/// Generates a setter from each item: its documentation, its name and parameter, and the field that it sets.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($value:ident: $ty:ty) { $field:ident = $set:expr })*) => {
        impl UdpOptions {
            $($(#[$doc])*
            #[must_use]
            pub const fn $name(mut self, $value: $ty) -> Self {
                self.$field = $set;
                self
            })*
        }
    };
}

setters! {
    /// Sets the address to listen on. Port 0 selects a free one. To serve other machines, listen on an address of this machine, or on all
    /// (`0.0.0.0`, `::`).
    address(address: SocketAddr) { address = Some(address) }

    /// Limits the bytes of events that wait for a client. More events are dropped and counted. The default is 64 MiB.
    limit(bytes: usize) { limit = bytes }

    /// Sets which events are dropped when the limit is reached. The default is the oldest.
    drops(drops: DropPolicy) { drops = drops }

    /// Sets the content of messages in the legacy layout. The default is text.
    content(content: LegacyContent) { content = content }

    /// Sets whether the batch layout is offered. The default is yes. Without the offer a session begins 100 ms sooner.
    offer_batches(offer: bool) { batch = offer }

    /// Limits the rate of sending, in bytes per second. Unlimited by default.
    rate(bytes_per_second: u64) { rate = Some(bytes_per_second) }

    /// Limits the rate in the legacy layout, in bytes per second: its clients cannot report that they are overrun. The default is 4 MiB/s.
    legacy_rate(bytes_per_second: u64) { legacy_rate = bytes_per_second }

    /// Limits the rate in the legacy layout, in datagrams per second, each with one event. The default is 4,000/s.
    legacy_pace(datagrams_per_second: u32) { legacy_pace = datagrams_per_second }

    /// Sets whether clients on this machine are served without address validation, and may use the legacy layout. The default is yes.
    trust_loopback(trust: bool) { trusts_loopback = trust }

    /// Limits the rate to an allowed address in the legacy layout, in bytes per second. The default is 1 MiB/s.
    allowed_rate(bytes_per_second: u64) { allowed_rate = bytes_per_second }

    /// Ends a session in the legacy layout when there was nothing to send for this time. Off by default.
    idle(time: Duration) { idle = Some(time) }

    /// Ends a session in the legacy layout after this time. Off by default.
    max_session(time: Duration) { max_session = Some(time) }

    /// Sets the time without a message after which a client of the batch layout is given up. The default is 5 s.
    client_timeout(time: Duration) { client_timeout = time }

    /// Sets how long the server continues to serve its client after the end of the trace. Unsent events are then lost. The default is 10 s.
    flush(time: Duration) { flush = time }

    /// Sets how long a server without a client waits for one after the end of the trace. By default it does not wait.
    linger(time: Duration) { linger = time }
}

impl UdpOptions {
    /// Returns the address to listen on, by default with the port from the environment.
    pub(super) fn listen_on(&self) -> Result<SocketAddr, SinkError> {
        match self.address {
            Some(address) => Ok(address),
            None => Ok((Ipv4Addr::LOCALHOST, port_from_environment()?).into()),
        }
    }

    /// Allows the legacy layout to an address of another machine, without address validation. An attacker who can forge this address can cause the
    /// trace to be sent there, at `allowed_rate`.
    #[must_use]
    pub fn allow(mut self, address: IpAddr) -> Self {
        self.allowed.push(address.to_canonical());
        self
    }

    /// Ingests events from a file or a FIFO (one per line), or from a Unix datagram socket (one per datagram); they may contain any bytes. If nothing
    /// exists at `path`, the socket is created. Events of a file wait for space below the limit and are not dropped;
    /// [`UdpServer::has_read_events`](super::UdpServer::has_read_events) reports its end.
    #[must_use]
    pub fn events_from(mut self, path: impl Into<PathBuf>) -> Self {
        self.events_from = Some(path.into());
        self
    }
}
