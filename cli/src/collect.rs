//! `tracectl collect`: receives traces over a network.

mod keyed;

#[cfg(feature = "nats")]
use crate::failure::Failure;
use crate::failure::{Outcome, VerbResult};
use crate::interrupt::Interrupt;
use crate::progress::LiveLine;
use crate::{message, output, units};
use clap::Args;
use keyed::{BoundCollector, Key};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_collector::{Addresses, Counts, DEFAULT_GAP_PACKETS, DEFAULT_MEMORY, IpNet, Options, Report};
#[cfg(feature = "nats")]
use tracepoint_collector::{MIN_LEASE, NatsOptions, PublishOptions};
#[cfg(feature = "nats")]
use tracepoint_wire::nats::{Broker, BrokerUrlError};

#[cfg(feature = "nats")]
const BROKER_EXAMPLES: &str = "
  tracectl collect -o /var/spool/traces --control 0.0.0.0:5342 --data 0.0.0.0:5343 --publish nats://broker.lan
  tracectl collect -o /var/tmp/traces --nats nats://broker.lan    (stores what others publish)";
#[cfg(not(feature = "nats"))]
const BROKER_EXAMPLES: &str = "";

/// Receives traces over a network, and stores them
///
/// Stores them below a directory, and serves them to live viewers. Replaces `lttng-relayd` on the same ports: LTTng's senders and live
/// viewers connect to it. Each session gets a directory HOST/SESSION-TIME. It listens on the loopback interface unless addresses are given. On other
/// addresses it requires a key from senders and viewers, which is made at the first start, and printed on a terminal. Ctrl-C ends it. Files that a
/// killed collector left incomplete are repaired by the next collector with the same directory.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl collect -o /var/tmp/traces
  tracectl collect -o /var/tmp/traces --control 0.0.0.0:5342 --data 0.0.0.0:5343 --live 0.0.0.0:5344 --quota 20G
  tracectl collect -o /var/tmp/traces --rotate-size 64M --keep 10
  lttng create shop --live --set-url=net://127.0.0.1              (LTTng sends to it)
  babeltrace2 -i lttng-live net://127.0.0.1/host/HOST/shop        (and views it){BROKER_EXAMPLES}"))]
pub(crate) struct Collect {
    /// The directory below which traces are stored; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The address for control connections of senders; port 0: any free one
    #[arg(long, help_heading = "Addresses", value_name = "ADDR:PORT", default_value = "127.0.0.1:5342")]
    control: SocketAddr,
    /// The address for packets of senders
    #[arg(long, help_heading = "Addresses", value_name = "ADDR:PORT", default_value = "127.0.0.1:5343")]
    data: SocketAddr,
    /// The address for live viewers
    #[arg(long, help_heading = "Addresses", value_name = "ADDR:PORT", default_value = "127.0.0.1:5344")]
    live: SocketAddr,
    /// Largest number of bytes of packets that wait to be written; senders wait when it is reached. A single packet may take half of it
    #[arg(long, help_heading = "Bounds", value_name = "SIZE", value_parser = units::size, default_value_t = DEFAULT_MEMORY)]
    memory: u64,
    /// Largest number of open files for streams, two per stream; at most, and by default, the part of the limit on open files that connections do not
    /// need: of 1024, 680. One address gets at most half of them, and one sender a quarter
    #[arg(long, help_heading = "Bounds", value_name = "N")]
    files: Option<u32>,
    /// Largest size of the directory; senders wait when it is reached
    #[arg(long, help_heading = "Bounds", value_name = "SIZE", value_parser = units::size)]
    quota: Option<u64>,
    /// Start a new chunk of a trace (`chunk-000001` and so on in its directory) when the current one has this size; LTTng rotates its own
    /// sessions
    #[arg(long, help_heading = "Chunks of traces", value_name = "SIZE", value_parser = units::size)]
    rotate_size: Option<u64>,
    /// Start a new chunk when the current one is this old
    #[arg(long, help_heading = "Chunks of traces", value_name = "TIME", value_parser = units::duration)]
    rotate_every: Option<Duration>,
    /// Keep this many chunks of each trace; with --quota fewer, if space runs out
    #[arg(long, help_heading = "Chunks of traces", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Number of packets of a stream that may wait behind a missing one before it is requested again immediately
    #[arg(long, help_heading = "Missing packets", value_name = "N", default_value_t = DEFAULT_GAP_PACKETS)]
    gap_packets: usize,
    /// How long to wait for a requested packet while nothing is repeated
    #[arg(long, help_heading = "Missing packets", value_name = "TIME", value_parser = units::duration, default_value = "2s")]
    gap_time: Duration,
    /// Accept only senders and viewers that have the key in FILE (`tracectl record --key-file`, `tracectl view --key-file`), and authenticate to them
    /// with it. LTTng's senders and babeltrace2, which have none, are refused [default: on loopback addresses none; on others
    /// `$XDG_STATE_HOME/tracepoint/collector.key`, or below `~/.local/state`, which is made at the first start, and printed on a terminal]
    #[arg(long, help_heading = "Shared key", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Require no key: everybody who can connect can store and read traces
    #[arg(long, help_heading = "Shared key", conflicts_with = "key_file")]
    no_key: bool,
    /// Accept LTTng's senders without the key from these addresses and networks (`10.0.0.0/8,192.0.2.7`); without a value, from everywhere
    #[arg(long, help_heading = "Shared key", value_name = "NET,…", value_parser = networks, num_args = 0..=1, require_equals = true,
        default_missing_value = EVERYWHERE)]
    allow_stock: Option<Networks>,
    /// Serve viewers without a key, such as babeltrace2, at these addresses and networks; without a value, everywhere
    #[arg(long, help_heading = "Shared key", value_name = "NET,…", value_parser = networks, num_args = 0..=1, require_equals = true,
        default_missing_value = EVERYWHERE)]
    allow_stock_viewers: Option<Networks>,
    /// Also collect traces from a NATS broker (`tracectl record --nats`), shared with other collectors: each trace is at one of them at a time
    #[cfg(feature = "nats")]
    #[arg(long, help_heading = "NATS", value_name = "nats://HOST[:PORT]", value_parser = crate::session::outputs::broker)]
    nats: Option<String>,
    /// The time after which another collector takes over the traces of a failed one, at least 1s
    #[cfg(feature = "nats")]
    #[arg(long, help_heading = "NATS", value_name = "TIME", value_parser = units::duration, default_value = "10s", requires = "nats")]
    lease: Duration,
    /// Publish the traces of this project's senders to a NATS broker, for collectors with --nats; LTTng's sessions are only stored. Packets that the
    /// broker has not acknowledged are published later, also by the next collector with the same directory
    #[cfg(feature = "nats")]
    #[arg(long, help_heading = "NATS", value_name = "nats://HOST[:PORT]", value_parser = crate::session::outputs::broker)]
    publish: Option<String>,
    /// How long to publish after Ctrl-C; the rest is left to the next collector
    #[cfg(feature = "nats")]
    #[arg(long, help_heading = "NATS", value_name = "TIME", value_parser = units::duration, default_value = "10s", requires = "publish")]
    flush: Duration,
    /// Serve metrics for Prometheus over HTTP; port 0: any free one
    #[arg(long, help_heading = "Addresses", value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
    /// Write two JSON objects: the addresses at the start, and counts at the end
    #[arg(long)]
    json: bool,
}

impl Collect {
    pub(crate) fn run(&self) -> VerbResult {
        let networks = |networks: &Option<Networks>| networks.as_ref().map_or_else(Vec::new, |it| it.0.clone());
        let options = Options {
            control: self.control,
            data: self.data,
            live: self.live,
            metrics: self.metrics,
            memory: self.memory,
            files: self.files.map(|files| files as usize),
            quota: self.quota,
            rotate_size: self.rotate_size,
            rotate_every: self.rotate_every,
            keep: self.keep.map(|keep| keep as usize),
            allow_stock: networks(&self.allow_stock),
            allow_stock_viewers: networks(&self.allow_stock_viewers),
            gap_packets: self.gap_packets,
            gap_time: self.gap_time,
            #[cfg(feature = "nats")]
            nats: self.takes_from()?,
            #[cfg(feature = "nats")]
            publish: self.publishes_to()?,
            ..Options::new(&self.output)
        };
        let bound = BoundCollector::new(options, self.key())?;
        let interrupt = Interrupt::once()?;
        let Addresses { control, data, live, metrics, .. } = bound.collector.addresses();
        if self.json {
            let (control, data, live) = (control.to_string(), data.to_string(), live.to_string());
            let metrics = metrics.map(|address| address.to_string());
            output::json(&json!({
                "type": "listening", "control": control, "data": data, "live": live, "metrics": metrics,
                "key_file": bound.key_file,
            }))?;
        } else {
            message::note(&format!(
                "storing below {}; senders connect to {control} and {data}, viewers to {live}",
                self.output.display()
            ));
        }
        if let Some(text) = bound.about_key() {
            message::note(&text);
        }
        let mut line = LiveLine::new();
        let counts = bound.collector.run(|report| {
            report.messages.iter().for_each(|text| message::note(text));
            line.show("packets", report.counts.stored, || status(report));
            !interrupt.is_requested()
        })?;
        drop(line);
        if self.json {
            output::json(&json!({ "type": "collected", "counts": counts }))?;
        } else {
            let Counts { sessions, stored, stored_bytes, .. } = counts;
            message::summary(&format!(
                "{}, {}, {} stored",
                message::counted(sessions, "session"),
                message::counted(stored, "packet"),
                units::bytes(stored_bytes)
            ));
        }
        let Counts { late, missing, damaged, unwritten, unpublished, unpublishable, .. } = counts;
        let mut outcome = Outcome::Success;
        if late + missing + damaged + unwritten > 0 {
            message::note(&format!(
                "not stored: {late} packets came late, {missing} were announced and did not come, {damaged} were damaged, {unwritten} could not be written"
            ));
            outcome = Outcome::Incomplete;
        }
        if unpublished + unpublishable > 0 {
            message::note(&format!(
                "not published: {unpublished} packets, which `tracectl collect --publish` with this directory will publish; and {unpublishable} that were removed before or are too large"
            ));
            outcome = Outcome::Incomplete;
        }
        Ok(outcome)
    }

    /// The source of the key that senders and viewers must have.
    fn key(&self) -> Key {
        let is_local =
            [self.control, self.data, self.live].iter().all(|address| address.ip().to_canonical().is_loopback());
        match &self.key_file {
            Some(path) => Key::In(path.clone()),
            None if self.no_key || is_local => Key::None,
            None => Key::OfCollector,
        }
    }

    #[cfg(feature = "nats")]
    fn takes_from(&self) -> Result<Option<NatsOptions>, Failure> {
        let Some(broker) = &self.nats else { return Ok(None) };
        if self.lease < MIN_LEASE {
            return Err(Failure::Refused("a lease has at least 1s, in which it is renewed four times".to_owned()));
        }
        Ok(Some(NatsOptions { broker: broker.parse().map_err(refused)?, lease: self.lease }))
    }

    #[cfg(feature = "nats")]
    fn publishes_to(&self) -> Result<Option<PublishOptions>, Failure> {
        let Some(broker) = &self.publish else { return Ok(None) };
        let broker: Broker = broker.parse().map_err(refused)?;
        if self.takes_from()?.is_some_and(|from| from.broker.shares_server_with(&broker)) {
            return Err(Failure::Refused(format!(
                "--nats would take from {broker} what --publish has published there: leave out one of them, or run two collectors with a directory each"
            )));
        }
        Ok(Some(PublishOptions { broker, flush: self.flush }))
    }
}

#[derive(Clone, Debug)]
struct Networks(Vec<IpNet>);

const EVERYWHERE: &str = "0.0.0.0/0,::/0";

fn networks(text: &str) -> Result<Networks, String> {
    let network = |text: &str| {
        let address = text.parse::<IpAddr>().map(IpNet::from);
        let expected = || format!("`{text}` is no address and no network, such as `192.0.2.7` and `10.0.0.0/8`");
        address.or_else(|_| text.parse::<IpNet>()).map_err(|_| expected())
    };
    text.split(',').map(network).collect::<Result<_, _>>().map(Networks)
}

/// The part of the status line that follows the number of packets.
pub(crate) fn status(report: &Report) -> String {
    let Report { sessions, streams, viewers, .. } = report;
    let [stored, memory] = [report.counts.stored_bytes, report.memory].map(units::bytes);
    let full = report.full.as_ref().map_or_else(String::new, |why| format!("; CANNOT WRITE: {why}"));
    format!("{stored}; {sessions} sessions, {streams} streams, {viewers} viewers; {memory} in memory{full}")
}

#[cfg(feature = "nats")]
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: BrokerUrlError) -> Failure {
    Failure::Refused(error.to_string())
}
