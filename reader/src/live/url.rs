//! The address of a relay daemon, or of one of its sessions.

use super::LiveError;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use tracepoint_wire::live::LIVE_PORT;

/// `net://HOST[:PORT]`, or `net://HOST[:PORT]/host/HOSTNAME/SESSION`, as for `babeltrace2 -i lttng-live`. `net4` and `net6` restrict
/// the address to that family; an IPv6 address is in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveUrl {
    /// The name or address of the relay.
    pub host: String,
    /// Its port for viewers.
    pub port: u16,
    /// The traced host and the session; `None` for the relay itself.
    pub session: Option<(String, String)>,
    /// Restricts the address to IPv4 (`false`) or IPv6 (`true`).
    pub(super) v6: Option<bool>,
}

impl LiveUrl {
    /// True if the text is a URL of this kind, and not a path.
    pub fn is_url(text: &str) -> bool {
        ["net://", "net4://", "net6://"].iter().any(|scheme| text.starts_with(scheme))
    }
}

impl FromStr for LiveUrl {
    type Err = LiveError;

    fn from_str(text: &str) -> Result<Self, LiveError> {
        let wrong = |reason: &str| LiveError::Url { url: text.to_owned(), reason: reason.to_owned() };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it does not begin with `net://`"))?;
        let v6 = match scheme {
            "net" => None,
            "net4" => Some(false),
            "net6" => Some(true),
            _ => return Err(wrong("it does not begin with `net://`")),
        };
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':').or(port.is_empty().then_some(""))),
            None => address.split_once(':').map_or((address, Some("")), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            Some("") if !address.ends_with(':') => LIVE_PORT,
            Some(port) => {
                port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("the port is not a number"))?
            }
            None => return Err(wrong("a port follows the address behind a colon")),
        };
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let session = match path.trim_end_matches('/') {
            "" => None,
            path => {
                let named = path.strip_prefix("host/").and_then(|rest| rest.split_once('/'));
                let named = named.filter(|(host, session)| !host.is_empty() && !session.is_empty());
                let (host, session) = named.ok_or_else(|| wrong("a session is named by `/host/HOSTNAME/SESSION`"))?;
                Some((host.to_owned(), session.to_owned()))
            }
        };
        Ok(Self { host: host.to_owned(), port, session, v6 })
    }
}

impl Display for LiveUrl {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { host, port, session, v6 } = self;
        let scheme = match v6 {
            None => "net",
            Some(false) => "net4",
            Some(true) => "net6",
        };
        let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{host}{close}:{port}")?;
        match session {
            Some((host, session)) => write!(f, "/host/{host}/{session}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_of_babeltrace2() {
        for (text, host, port, session) in [
            ("net://localhost", "localhost", 5344, None),
            ("net://127.0.0.1:7000", "127.0.0.1", 7000, None),
            ("net4://h/", "h", 5344, None),
            ("net6://[::1]:99/host/web-1/shop", "::1", 99, Some(("web-1", "shop"))),
            ("net://h/host/web/shop-20261123", "h", 5344, Some(("web", "shop-20261123"))),
        ] {
            let url: LiveUrl = text.parse().unwrap();
            let session = session.map(|(host, name)| (host.to_owned(), name.to_owned()));
            assert_eq!((url.host.as_str(), url.port, &url.session), (host, port, &session), "{text}");
            assert_eq!(url.to_string().parse::<LiveUrl>().unwrap(), url);
        }
        for text in [
            "net:/h",
            "http://h",
            "net://",
            "net://:5344",
            "net://h:",
            "net://h:0",
            "net://h:port",
            "net://[::1]x",
            "net://[::1]:",
            "net://h/shop",
            "net://h/host/web",
            "net://h/host//shop",
            "h",
        ] {
            assert!(text.parse::<LiveUrl>().is_err(), "{text}");
        }
    }
}
