//! Names of traces in a NATS broker, and the messages that are published under them: see `docs/nats.md`. Without a socket, but for `JetStream`,
//! which the feature `nats` adds.

#[cfg(feature = "nats")]
mod jetstream;
mod message;
mod publication;
#[cfg(test)]
mod tests;

#[cfg(feature = "nats")]
pub use jetstream::{Acknowledgement, JetStream};
pub use message::{Message, control_frames, with_handle};
pub use publication::{Publication, Publish};

use std::fmt::{self, Write};
use std::str::FromStr;

/// The first token of all subjects.
pub const ROOT: &str = "tracepoint";
/// What the stream of the broker takes.
pub const ALL_SUBJECTS: &str = "tracepoint.>";
/// The subjects of all traces under which they begin.
pub const ALL_HELLOS: &str = "tracepoint.*.*.=hello";
/// The name of the stream of the broker, where it has none with these subjects.
pub const STREAM: &str = "TRACEPOINT";
/// The bucket of leases.
pub const BUCKET: &str = "tracepoint-leases";
/// What a message has beside a packet, at most: subject, headers, route.
pub const OVERHEAD: usize = 4096;
/// The longest piece of metadata or of an account in a message, in bytes.
pub const LONGEST_PIECE: usize = 128 << 10;

const HELLO: &str = "=hello";
const CONTROL: &str = "=control";
const SYNC: &str = "=sync";

/// A name as a token of a subject: every byte but `A`-`Z`, `a`-`z`, `0`-`9`, `-` and `_` as `=` and two hexadecimal digits. `=` for an empty name.
pub fn escaped(name: &str) -> String {
    if name.is_empty() {
        return "=".to_owned();
    }
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => token.push(byte.into()),
            // Writing to a String does not fail.
            _ => drop(write!(token, "={byte:02X}")),
        }
    }
    token
}

/// The name of a token; `None` if [`escaped`] makes no such token.
pub fn unescaped(token: &str) -> Option<String> {
    if token == "=" {
        return Some(String::new());
    }
    let mut name = Vec::with_capacity(token.len());
    let mut bytes = token.bytes();
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'=' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            (digit(bytes.next())? << 4 | digit(bytes.next())?) as u8
        } else {
            byte
        };
        name.push(byte);
    }
    String::from_utf8(name).ok().filter(|name| escaped(name) == token)
}

/// The subjects of a trace: `tracepoint.HOST.TRACE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceSubject(String);

/// What is published under the last token of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The beginning of the trace.
    Hello,
    /// What must be known of it before its packets.
    Control,
    /// Synchronisation points.
    Sync,
    /// Packets of the stream with this name.
    Stream(String),
}

impl TraceSubject {
    /// Those of the trace with this uuid of a process.
    pub fn new(host: &str, session: &str, process: &str, uuid: [u8; 16]) -> Self {
        let [a, b, c, d, ..] = uuid;
        let trace = format!("{session}-{process}-{a:02x}{b:02x}{c:02x}{d:02x}");
        Self(format!("{ROOT}.{}.{}", escaped(host), escaped(&trace)))
    }

    /// Takes a subject apart; `None` if it is none of a trace.
    pub fn parse(subject: &str) -> Option<(Self, Token)> {
        let (trace, token) = subject.rsplit_once('.')?;
        let mut tokens = trace.split('.');
        let (root, host, name) = (tokens.next()?, tokens.next()?, tokens.next()?);
        if root != ROOT || tokens.next().is_some() {
            return None;
        }
        let (_, _) = (unescaped(host)?, unescaped(name)?);
        let token = match token {
            HELLO => Token::Hello,
            CONTROL => Token::Control,
            SYNC => Token::Sync,
            stream => Token::Stream(unescaped(stream)?),
        };
        Some((Self(trace.to_owned()), token))
    }

    /// The subject of this token.
    pub fn subject(&self, token: &Token) -> String {
        match token {
            Token::Hello => format!("{}.{HELLO}", self.0),
            Token::Control => format!("{}.{CONTROL}", self.0),
            Token::Sync => format!("{}.{SYNC}", self.0),
            Token::Stream(name) => format!("{}.{}", self.0, escaped(name)),
        }
    }

    /// What all its subjects match.
    pub fn all(&self) -> String {
        format!("{}.>", self.0)
    }

    /// The key of its lease: `HOST.TRACE`.
    pub fn key(&self) -> &str {
        &self.0[ROOT.len() + 1..]
    }
}

/// The id of a message in the duplicate window of the broker.
pub fn message_id(uuid: [u8; 16], what: &str) -> String {
    let mut id = hex(&uuid);
    id.push('.');
    id.push_str(what);
    id
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The servers of a broker: `nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT]`, or `tls://…`, several of one cluster separated by commas, and
/// `?replicas=N` at the end.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    servers: Vec<String>,
    replicas: usize,
}

impl Broker {
    /// Whether a text is meant as the URL of a broker.
    pub fn is_url(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// The URLs of the servers, with what authenticates.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// Whether a server of one is named by the other, too: by the same name and port.
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

    /// How many servers keep each message; 1 by default.
    pub const fn replicas(&self) -> usize {
        self.replicas
    }
}

/// The port of a server that has none in its URL.
const DEFAULT_PORT: &str = "4222";
/// How the URL of a server begins.
const SCHEMES: [&str; 2] = ["nats://", "tls://"];
/// The most replicas that `JetStream` has.
const MOST_REPLICAS: usize = 5;

impl FromStr for Broker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; expected nats://HOST[:PORT][,nats://HOST…][?replicas=N]");
        let (servers, query) = text.split_once('?').map_or((text, None), |(servers, query)| (servers, Some(query)));
        let replicas = match query.map(|query| query.strip_prefix("replicas=").and_then(|number| number.parse().ok())) {
            None => 1,
            Some(Some(replicas @ 1..=MOST_REPLICAS)) => replicas,
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

/// Without what authenticates.
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
