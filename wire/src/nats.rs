//! Names of traces in a NATS broker, and the messages published under them: see `docs/nats.md`. There is no connection here, except for `JetStream`,
//! which the feature `nats` adds.

mod broker;
#[cfg(feature = "nats")]
mod jetstream;
mod message;
mod publication;
#[cfg(test)]
mod tests;

pub use broker::{Broker, BrokerUrlError};
#[cfg(feature = "nats")]
pub use jetstream::{Acknowledgement, JetStream, JetStreamError, error_text};
pub use message::{Message, control_frames, with_handle};
pub use publication::{Publication, Publish};

use std::fmt::Write;

/// The first token of all subjects.
pub const ROOT: &str = "tracepoint";
/// The subjects of the broker's stream.
pub const ALL_SUBJECTS: &str = "tracepoint.>";
/// The subjects of the first messages of all traces.
pub const ALL_HELLOS: &str = "tracepoint.*.*.=hello";
/// The name of the broker's stream, if it has none with these subjects.
pub const STREAM: &str = "TRACEPOINT";
/// The bucket of leases.
pub const BUCKET: &str = "tracepoint-leases";
/// Maximum size of a message in addition to its packet: subject, headers, route.
pub const OVERHEAD: usize = 4096;
/// Maximum size of a piece of metadata or of an account in a message, in bytes.
pub const LONGEST_PIECE: usize = 128 << 10;

const HELLO: &str = "=hello";
const CONTROL: &str = "=control";
const SYNC: &str = "=sync";

/// A name as a token of a subject. Every byte except `A`-`Z`, `a`-`z`, `0`-`9`, `-` and `_` becomes `=` and two hexadecimal digits; an empty name
/// becomes `=`.
pub fn escaped(name: &str) -> String {
    if name.is_empty() {
        return "=".to_owned();
    }
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => token.push(byte.into()),
            // Writing to a `String` cannot fail.
            _ => drop(write!(token, "={byte:02X}")),
        }
    }
    token
}

/// The name of a token; `None` if [`escaped`] never returns this token.
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

/// The last token of a subject, which is the kind of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The beginning of the trace.
    Hello,
    /// Information that must precede its packets.
    Control,
    /// Synchronisation points.
    Sync,
    /// Packets of the stream with this name.
    Stream(String),
}

impl TraceSubject {
    /// The subjects of the trace with this uuid, in a process.
    pub fn new(host: &str, session: &str, process: &str, uuid: [u8; 16]) -> Self {
        let [a, b, c, d, ..] = uuid;
        let trace = format!("{session}-{process}-{a:02x}{b:02x}{c:02x}{d:02x}");
        Self(format!("{ROOT}.{}.{}", escaped(host), escaped(&trace)))
    }

    /// Parses a subject; `None` if it is not a subject of a trace.
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

    /// A wildcard for all its subjects.
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
