//! Metrics over HTTP: `GET` and `HEAD` of `/metrics`. Each connection serves one request.

use super::Metrics;

/// Maximum size of a request, in bytes.
pub const LONGEST_REQUEST: usize = 16 << 10;

const PATH: &str = "/metrics";

/// The first line of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: String,
    path: String,
}

impl Request {
    /// Parses a request once its head is complete; `None` before that. Other protocols than HTTP yield an empty method and path, and are refused.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let mut words = head.lines().next().unwrap_or_default().split_ascii_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/")) && words.next().is_none();
        if !is_http {
            return Some(Self { method: String::new(), path: String::new() });
        }
        // A proxy may send the whole URL.
        let origin = target.split_once("://").map_or(target, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
        let path = origin.split(['?', '#']).next().unwrap_or_default();
        Some(Self { method: method.to_owned(), path: path.to_owned() })
    }

    /// Returns the answer to a request for anything except the metrics.
    pub fn refusal(&self) -> Option<String> {
        if self.method.is_empty() {
            return Some(self.answer("400 Bad Request", "", "this is no request of HTTP/1\n"));
        }
        if self.path != PATH {
            let text = format!("there is nothing at this path: the metrics are at {PATH}\n");
            return Some(self.answer("404 Not Found", "", &text));
        }
        if !["GET", "HEAD"].contains(&self.method.as_str()) {
            let text = format!("{PATH} can be read only: use GET or HEAD\n");
            return Some(self.answer("405 Method Not Allowed", "Allow: GET, HEAD\r\n", &text));
        }
        None
    }

    /// Returns the answer with the metrics.
    pub fn reply(&self, metrics: Metrics) -> String {
        self.respond("200 OK", "", "text/plain; version=0.0.4", &metrics.into_text())
    }

    /// Returns the answer for metrics that are unavailable, with the reason.
    pub fn failure(&self, why: &str) -> String {
        self.answer("500 Internal Server Error", "", &format!("{why}\n"))
    }

    fn answer(&self, status: &str, headers: &str, text: &str) -> String {
        self.respond(status, headers, "text/plain; charset=utf-8", text)
    }

    /// Encodes a response; one to `HEAD` has no body.
    fn respond(&self, status: &str, headers: &str, content_type: &str, body: &str) -> String {
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Type: {content_type}\r\nConnection: close\r\n");
        let sent = if self.method == "HEAD" { "" } else { body };
        format!("{head}Content-Length: {}\r\n\r\n{sent}", body.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Request;
    use crate::prometheus::Metrics;

    /// The first line of the answer, and its body.
    fn answer(request: &str) -> (String, String) {
        let request = Request::parse(request.as_bytes()).expect("it is complete");
        let answer = request.refusal().unwrap_or_else(|| {
            let mut metrics = Metrics::default();
            metrics.family(crate::prometheus::Kind::Gauge, "up", "Whether.").sample("", &[], 1);
            request.reply(metrics)
        });
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn requests_of_other_paths_and_methods_are_refused() {
        for (request, status, part) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200 OK", "up 1\n"),
            ("GET /metrics?name[]=up HTTP/1.0\r\n\r\n", "200 OK", "up 1\n"),
            ("GET http://host:9464/metrics HTTP/1.1\r\n\r\n", "200 OK", "up 1\n"),
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found", "/metrics"),
            ("GET /metrics/ HTTP/1.1\r\n\r\n", "404 Not Found", "/metrics"),
            ("POST /other HTTP/1.1\r\n\r\n", "404 Not Found", "/metrics"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "GET or HEAD"),
            ("get /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "GET or HEAD"),
            ("hello\r\n\r\n", "400 Bad Request", "no request"),
            ("\r\n\r\n", "400 Bad Request", "no request"),
        ] {
            let (head, body) = answer(request);
            assert!(
                head.starts_with(&format!("HTTP/1.1 {status}\r\n")) && body.contains(part),
                "{request:?}: {head} {body}"
            );
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
            assert_eq!(head.contains("Allow: GET, HEAD"), status.starts_with("405"), "{head}");
        }
        assert_eq!(Request::parse(b"GET /metrics HTTP/1.1\r\n"), None);
    }

    #[test]
    fn a_head_has_the_length_alone() {
        let (full, body) = answer("GET /metrics HTTP/1.1\r\n\r\n");
        assert_eq!(answer("HEAD /metrics HTTP/1.1\r\n\r\n"), (full, String::new()));
        assert!(!body.is_empty());
        let (head, body) = answer("HEAD /other HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 404 ") && body.is_empty(), "{head} {body}");
    }
}
