//! The state of the collector as Prometheus reads it, over HTTP. Whatever is asked for, the answer is the same.

use super::Shared;
use crate::connection::Connection;
use crate::counts::Counts;
use std::fmt::Write;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// How long a request may take, and the most bytes of it.
const TIME: Duration = Duration::from_secs(10);
const LONGEST_REQUEST: usize = 16 << 10;

/// Answers one request.
pub(super) async fn metrics(shared: Rc<Shared>, mut connection: Connection, _: SocketAddr) -> Result<(), String> {
    while !connection.bytes().windows(4).any(|end| end == b"\r\n\r\n") {
        let size = connection.bytes().len();
        if size > LONGEST_REQUEST {
            return Err("the request is too long".to_owned());
        }
        match connection.fill(size + 1, Some(TIME)).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(format!("no complete request came: {error}")),
        }
    }
    let body = text(&shared);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n";
    let reply = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    connection.write(reply.as_bytes()).await.map_err(|error| format!("the answer is not taken: {error}"))
}

/// The state in Prometheus's text format.
fn text(shared: &Shared) -> String {
    let report = shared.state();
    let Counts { connections, refused, failed, sessions, packets, stored, stored_bytes, .. } = report.counts;
    let Counts { late, missing, damaged, ignored, unwritten, viewed_bytes, .. } = report.counts;
    let mut out = String::new();
    let mut put = |kind: &str, name: &str, help: &str, values: &[(&str, u64)]| {
        let _ = writeln!(out, "# HELP tracepoint_collector_{name} {help}\n# TYPE tracepoint_collector_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(out, "tracepoint_collector_{name}{labels} {value}");
        }
    };
    put("counter", "connections_total", "Connections that were accepted.", &[("", connections)]);
    put("counter", "connections_refused_total", "Connections beyond the limit.", &[("", refused)]);
    put("counter", "connections_failed_total", "Connections that were ended for what came.", &[("", failed)]);
    put("counter", "sessions_total", "Sessions that were opened.", &[("", sessions)]);
    put("counter", "packets_total", "Packets that came.", &[("", packets)]);
    put("counter", "packets_stored_total", "Packets that are in a file.", &[("", stored)]);
    put("counter", "stored_bytes_total", "Bytes of stored packets.", &[("", stored_bytes)]);
    let lost = [
        ("{reason=\"late\"}", late),
        ("{reason=\"missing\"}", missing),
        ("{reason=\"damaged\"}", damaged),
        ("{reason=\"unwritten\"}", unwritten),
    ];
    put("counter", "packets_not_stored_total", "Packets that are in no file.", &lost);
    put("counter", "datagrams_ignored_total", "Datagrams of no session, or malformed.", &[("", ignored)]);
    put("counter", "viewed_bytes_total", "Bytes that were sent to viewers.", &[("", viewed_bytes)]);
    put("gauge", "sessions", "Sessions that are open.", &[("", report.sessions as u64)]);
    put("gauge", "streams", "Streams of open sessions.", &[("", report.streams as u64)]);
    put("gauge", "viewers", "Viewers that are attached.", &[("", report.viewers as u64)]);
    put("gauge", "memory_bytes", "Bytes of packets that wait in memory.", &[("", report.memory)]);
    put("gauge", "disk_bytes", "Bytes in the output directory.", &[("", report.disk)]);
    put("gauge", "full", "1 while nothing can be written.", &[("", u64::from(report.full.is_some()))]);
    out
}
