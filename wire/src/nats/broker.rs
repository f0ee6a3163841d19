//! The address of a NATS broker.

use std::fmt;
use std::str::FromStr;

/// The servers of a broker: `nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT]` or `tls://…`; several servers of one cluster are separated by commas, and
/// `?replicas=N` may follow.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    servers: Vec<String>,
    replicas: usize,
}

impl Broker {
    /// The URLs of the servers, including credentials.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// True if both name a common server, by the same host name and port.
    pub fn shares_server_with(&self, other: &Self) -> bool {
        let address = |server: &str| {
            let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_ascii_lowercase();
            let has_port =
                host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
            if has_port { host } else { format!("{host}:{DEFAULT_PORT}") }
        };
        let others: Vec<_> = other.servers.iter().map(|server| address(server)).collect();
        self.servers.iter().any(|server| others.contains(&address(server)))
    }

    /// Number of servers that keep each message; 1 by default.
    pub const fn replicas(&self) -> usize {
        self.replicas
    }
}

/// The port of a server whose URL has none.
const DEFAULT_PORT: &str = "4222";
/// The schemes of a server's URL.
const SCHEMES: [&str; 2] = ["nats://", "tls://"];
/// Maximum number of replicas in `JetStream`.
const MAX_REPLICAS: usize = 5;

/// The text is not the URL of a broker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; expected nats://HOST[:PORT][,nats://HOST…][?replicas=N]")]
pub struct BrokerUrlError {
    reason: &'static str,
}

impl FromStr for Broker {
    type Err = BrokerUrlError;

    fn from_str(text: &str) -> Result<Self, BrokerUrlError> {
        let wrong = |reason: &'static str| BrokerUrlError { reason };
        let (servers, query) = text.split_once('?').map_or((text, None), |(servers, query)| (servers, Some(query)));
        let replicas = match query.map(|query| query.strip_prefix("replicas=").and_then(|number| number.parse().ok())) {
            None => 1,
            Some(Some(replicas @ 1..=MAX_REPLICAS)) => replicas,
            Some(_) => return Err(wrong("`?` may only be followed by `replicas=` and a number from 1 to 5")),
        };
        let servers: Vec<String> = servers.split(',').map(str::to_owned).collect();
        for server in &servers {
            let rest = SCHEMES.iter().find_map(|scheme| server.strip_prefix(scheme));
            let host = rest.map(|rest| rest.rsplit_once('@').map_or(rest, |(_, host)| host));
            let host = host.ok_or_else(|| wrong("a server is not named by a URL"))?;
            let is_printable = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
            let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((name, port)) => {
                    (name, port.strip_prefix(':').or_else(|| port.is_empty().then_some(DEFAULT_PORT)))
                }
                None => host.split_once(':').map_or((host, Some(DEFAULT_PORT)), |(name, port)| (name, Some(port))),
            };
            let port = port.and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
            if name.is_empty() || port.is_none() || !is_printable(server) || name.contains('/') {
                return Err(wrong("a server has no host, or no port from 1 to 65535"));
            }
        }
        Ok(Self { servers, replicas })
    }
}

/// Omits the credentials.
impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, server) in self.servers.iter().enumerate() {
            let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            write!(f, "{}{scheme}://{host}", if number > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broker({self}, {} replicas)", self.replicas)
    }
}
