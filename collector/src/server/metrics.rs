//! Serves the collector's state to Prometheus over HTTP.

use crate::connection::Connection;
use crate::counts::Counts;
use crate::prometheus::http::{LONGEST_REQUEST, Request};
use crate::prometheus::{Kind, Metrics};
use crate::shared::ServerState;
use anyhow::{Context as _, bail};
use std::net::SocketAddr;
use std::rc::Rc;

/// Answers one request.
pub(super) async fn metrics(shared: Rc<ServerState>, mut connection: Connection, _: SocketAddr) -> anyhow::Result<()> {
    let request = loop {
        if let Some(request) = Request::parse(connection.bytes()) {
            break request;
        }
        let size = connection.bytes().len();
        if size > LONGEST_REQUEST {
            bail!("the request is too long");
        }
        match connection.fill_greeting(size + 1).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => bail!("no complete request came: {error}"),
        }
    };
    let reply = request.refusal().unwrap_or_else(|| request.reply(state(&shared)));
    connection.write(reply.as_bytes()).await.context("the answer is not taken")
}

fn state(shared: &ServerState) -> Metrics {
    let report = shared.state();
    let Counts { connections, refused, failed, sessions, packets, stored, stored_bytes, .. } = report.counts;
    let (files, most_files) = report.files;
    let Counts { late, missing, damaged, ignored, unwritten, viewed_bytes, refused_streams, .. } = report.counts;
    let mut metrics = Metrics::default();
    let mut put = |kind, name: &str, help: &str, values: &[(&str, u64)]| {
        let name = format!("tracepoint_collector_{name}");
        let mut family = metrics.family(kind, &name, help);
        for (reason, value) in values {
            let labels = [("reason", *reason)];
            family.sample("", if reason.is_empty() { &[] } else { &labels }, value);
        }
    };
    put(Kind::Counter, "connections_total", "Connections that were accepted.", &[("", connections)]);
    put(Kind::Counter, "connections_refused_total", "Connections beyond the limit.", &[("", refused)]);
    put(
        Kind::Counter,
        "streams_refused_total",
        "Sessions and streams beyond the share of their address.",
        &[("", refused_streams)],
    );
    put(Kind::Counter, "connections_failed_total", "Connections that were ended for what came.", &[("", failed)]);
    put(Kind::Counter, "sessions_opened_total", "Sessions that were opened.", &[("", sessions)]);
    put(Kind::Counter, "packets_total", "Packets that came.", &[("", packets)]);
    put(Kind::Counter, "packets_stored_total", "Packets that are in a file.", &[("", stored)]);
    put(Kind::Counter, "stored_bytes_total", "Bytes of stored packets.", &[("", stored_bytes)]);
    let lost = [("late", late), ("missing", missing), ("damaged", damaged), ("unwritten", unwritten)];
    put(Kind::Counter, "packets_not_stored_total", "Packets that are in no file.", &lost);
    put(Kind::Counter, "datagrams_ignored_total", "Datagrams of no session, or malformed.", &[("", ignored)]);
    put(Kind::Counter, "viewed_bytes_total", "Bytes that were sent to viewers.", &[("", viewed_bytes)]);
    put(Kind::Gauge, "sessions", "Sessions that are open.", &[("", report.sessions as u64)]);
    put(Kind::Gauge, "streams", "Streams of open sessions.", &[("", report.streams as u64)]);
    put(Kind::Gauge, "viewers", "Viewers that are attached.", &[("", report.viewers as u64)]);
    put(Kind::Gauge, "memory_bytes", "Bytes of packets that wait in memory.", &[("", report.memory)]);
    put(Kind::Gauge, "stream_files", "Files that are open for streams.", &[("", files as u64)]);
    put(Kind::Gauge, "stream_files_limit", "How many there may be.", &[("", most_files as u64)]);
    put(Kind::Gauge, "disk_bytes", "Bytes in the output directory.", &[("", report.disk)]);
    put(Kind::Gauge, "full", "1 while nothing can be written.", &[("", u64::from(report.full.is_some()))]);
    #[cfg(feature = "nats")]
    if let Some(nats) = &shared.nats {
        let unstored = nats.unstored.borrow();
        let (traces, messages) = (unstored.len() as u64, unstored.values().sum());
        let connected = u64::from(nats.is_connected.get());
        put(Kind::Gauge, "nats_connected", "1 while the broker is connected.", &[("", connected)]);
        put(Kind::Gauge, "nats_traces", "Traces of the broker that this collector has.", &[("", traces)]);
        put(Kind::Gauge, "nats_unstored_messages", "Messages of these that are not stored.", &[("", messages)]);
    }
    #[cfg(feature = "nats")]
    if let Some(publish) = &shared.publish {
        let Counts { published, unpublishable, .. } = report.counts;
        let connected = u64::from(publish.is_connected.get());
        put(
            Kind::Gauge,
            "publish_connected",
            "1 while the broker is connected, to which is published.",
            &[("", connected)],
        );
        put(Kind::Counter, "published_packets_total", "Packets that the broker has stored.", &[("", published)]);
        put(Kind::Gauge, "unpublished_packets", "Stored packets that it has not.", &[("", publish.unpublished())]);
        put(
            Kind::Counter,
            "unpublishable_packets_total",
            "Packets that were removed before, or are too large.",
            &[("", unpublishable)],
        );
    }
    metrics
}
