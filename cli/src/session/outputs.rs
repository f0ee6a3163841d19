//! The outputs of a session on the command line.

use crate::argument_error::ArgumentError;
use crate::failure::Failure;
use crate::units;
use clap::{Args, ValueEnum};
use fileguard::shortage_mend;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint_session_spec::{DropPolicy, ExistingTraces, SinkSpec, SpecError, StreamSpec, TextSinkSpec};
use tracepoint_sinks::{dated_directory, remove_traces};
#[cfg(feature = "nats")]
use tracepoint_wire::nats::{Broker, BrokerUrlError};

/// The events to drop when too many wait for a client.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Drop {
    /// The events that have waited longest
    Oldest,
    /// New events
    Newest,
}

/// The outputs of a named session.
#[derive(Debug, Args)]
#[command(next_help_heading = "Outputs")]
pub(super) struct SessionOutputs {
    /// Write CTF traces: each process creates a directory of its own in DIR
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    others: OutputArguments,
    /// Largest size of each output of each process; with `--keep`, of the chunks that are kept
    #[arg(long, value_name = "SIZE", value_parser = units::size, default_value = "1G")]
    max_size: u64,
}

impl SessionOutputs {
    pub(super) fn sinks(&self) -> Result<Vec<SinkSpec>, Failure> {
        let output = self.output.as_ref().map(std::path::absolute).transpose()?;
        let mut sinks = self.others.sinks(output.as_deref(), self.max_size)?;
        for sink in &mut sinks {
            if let SinkSpec::Ctf(sink) = sink {
                let existing =
                    [(self.others.replace, ExistingTraces::Replace), (self.others.dated, ExistingTraces::Dated)];
                sink.existing = existing.into_iter().find_map(|(is_asked, existing)| is_asked.then_some(existing));
            }
        }
        Ok(sinks)
    }
}

/// Outputs other than CTF directories, and the chunks of CTF directories.
#[derive(Debug, Args)]
#[command(next_help_heading = "Outputs")]
pub(crate) struct OutputArguments {
    /// Write the newest packets into a circular dt file. One process gets FILE, others get files next to it; if FILE is a directory, each
    /// process gets a file in it
    #[arg(long, value_name = "FILE")]
    dt: Option<PathBuf>,
    /// Number of packets in a dt file [default: 256]
    #[arg(long, value_name = "N", requires = "dt", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    dt_slots: Option<u32>,
    /// Serve the events of each process over UDP, for `tracectl read`. Without a port, the first process gets port 5556, and the others free
    /// ports; with port 0 all get free ports. The ports are printed
    #[arg(long, help_heading = "Server over UDP", value_name = "ADDR[:PORT]", value_parser = server_address)]
    udp: Option<ServerAddress>,
    /// Send single events to this address on another machine without a proof of address; may be given several times
    #[arg(long, help_heading = "Server over UDP", value_name = "ADDRESS", requires = "udp")]
    udp_allow: Vec<IpAddr>,
    /// Largest number of bytes per second [default: 4M for single events, 1M to other machines; no limit for batches]
    #[arg(long, help_heading = "Server over UDP", value_name = "SIZE", requires = "udp", value_parser = units::size)]
    udp_rate: Option<u64>,
    /// Largest number of single events per second [default: 4000]
    #[arg(long, help_heading = "Server over UDP", value_name = "N", requires = "udp", value_parser = clap::value_parser!(u32).range(1..))]
    udp_pace: Option<u32>,
    /// Largest size of the events that wait for a client in each process [default: 64M]
    #[arg(long, help_heading = "Server over UDP", value_name = "SIZE", requires = "udp", value_parser = units::size)]
    udp_limit: Option<u64>,
    /// The events to drop when more wait [default: oldest]
    #[arg(long, help_heading = "Server over UDP", value_name = "END", requires = "udp")]
    udp_drop: Option<Drop>,
    /// Write lines of text. One process gets FILE, others get files next to it. Without FILE, or with `-`, lines go to the standard error of
    /// `record`; in a session of `create`, to the standard error of each process
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    text: Option<PathBuf>,
    /// Stream the packets of each process to a collector (`tracectl collect`) or to lttng-relayd; which of them it is, is detected. The default ports
    /// are 5342 for control and 5343 for data. If only PORT is given, data go to the port announced by the collector, or to the next one. `DATA_PORT`
    /// overrides the announced port: give both if ports are forwarded
    #[arg(long, help_heading = "Streaming", value_name = "HOST[:PORT[:DATA_PORT]]", value_parser = peer, group = "streaming")]
    stream: Option<String>,
    /// The same, using the protocol of lttng-relayd
    #[arg(long, help_heading = "Streaming", value_name = "HOST[:PORT[:DATA_PORT]]", value_parser = peer, group = "streaming")]
    relay: Option<String>,
    /// Publish the packets of each process to a NATS broker (`nats-server -js`), for `tracectl collect --nats`. Several URLs, separated
    /// by commas, name servers of one cluster
    #[cfg(feature = "nats")]
    #[arg(long, help_heading = "Streaming", value_name = "nats://HOST[:PORT]", value_parser = broker, group = "streaming", conflicts_with_all = ["stream_udp", "key_file"])]
    nats: Option<String>,
    /// Send packets to the collector in UDP datagrams in place of a data connection
    #[arg(long, help_heading = "Streaming", requires = "streaming", conflicts_with = "relay")]
    stream_udp: bool,
    /// Largest datagram, from 576 to 65507 bytes [default: 1400]
    #[arg(long, help_heading = "Streaming", value_name = "BYTES", requires = "stream_udp", value_parser = clap::value_parser!(u32).range(576..=65507))]
    mtu: Option<u32>,
    /// Interval of the synchronisation points of a stream, from 10ms to 60s: bounds the delay with which viewers see events if threads are idle
    /// [default: 1s]
    #[arg(long, help_heading = "Streaming", value_name = "TIME", requires = "streaming", value_parser = units::duration)]
    sync_interval: Option<Duration>,
    /// Largest size of the packets that wait to be sent or acknowledged, in each process; 0: nothing is sent again [default: 16M]
    #[arg(long, help_heading = "Streaming", value_name = "SIZE", requires = "streaming", value_parser = units::size_or_none)]
    resend_buffer: Option<u64>,
    /// Largest number of bytes per second that all processes of the session stream together: `500K/s`. Events that exceed it are lost, and counted;
    /// see also `tracectl bandwidth` [default: no limit]
    #[arg(long, help_heading = "Streaming", value_name = "RATE", requires = "streaming", value_parser = units::rate)]
    max_bandwidth: Option<u64>,
    /// File with the key shared by this sender and the collector (`tracectl collect --key-file`), with which both authenticate
    #[arg(long, help_heading = "Streaming", value_name = "FILE", requires = "streaming", conflicts_with = "relay")]
    key_file: Option<PathBuf>,
    /// Try for this time to reach the peer before recording starts [default: once]
    #[arg(long, help_heading = "Streaming", value_name = "TIME", requires = "streaming", value_parser = units::duration)]
    retry: Option<Duration>,
    /// Replace the CTF traces in DIR; anything else there is an error
    #[arg(long, requires = "output", conflicts_with = "dated")]
    replace: bool,
    /// Write CTF traces into a new directory in DIR named after the current time, such as `20261123T162431Z`
    #[arg(long, requires = "output")]
    dated: bool,
    /// Start a new chunk of the CTF trace (`chunk-000001` and so on) when the current one has this size
    #[arg(long, help_heading = "Chunks of CTF traces", value_name = "SIZE", value_parser = units::size)]
    rotate_size: Option<u64>,
    /// Start a new chunk when the current one is this old
    #[arg(long, help_heading = "Chunks of CTF traces", value_name = "TIME", value_parser = units::duration)]
    rotate_every: Option<Duration>,
    /// Keep the newest N chunks of each process, within `--max-size` [default: all]
    #[arg(long, help_heading = "Chunks of CTF traces", value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    keep: Option<u32>,
}

impl OutputArguments {
    /// True if there is an output other than a CTF directory.
    pub(crate) const fn any(&self) -> bool {
        #[cfg(feature = "nats")]
        if self.nats.is_some() {
            return true;
        }
        self.dt.is_some() || self.udp.is_some() || self.text.is_some() || self.stream.is_some() || self.relay.is_some()
    }

    /// True if old chunks are removed, so that the size of the output does not end a recording.
    pub(crate) const fn removes_old_chunks(&self) -> bool {
        self.keep.is_some()
    }

    /// The sinks; CTF goes to the directory with the absolute path `ctf`.
    pub(crate) fn sinks(&self, ctf: Option<&Path>, max_size: u64) -> Result<Vec<SinkSpec>, Failure> {
        let mut sinks = Vec::new();
        if let Some(ctf) = ctf {
            let mut sink = SinkSpec::ctf(ctf).max_size(max_size);
            (sink.rotate_size, sink.keep) = (self.rotate_size, self.keep);
            sink.rotate_every_ms = self.rotate_every.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            sinks.push(sink.into());
        } else if self.rotate_size.is_some() || self.rotate_every.is_some() || self.keep.is_some() {
            let text = "only CTF traces have chunks: `--rotate-size`, `--rotate-every` and `--keep` need `-o DIR`";
            return Err(Failure::Refused(text.to_owned()));
        }
        if let Some(dt) = &self.dt {
            let mut sink = SinkSpec::dt(std::path::absolute(dt)?).max_size(max_size);
            sink.slots = self.dt_slots;
            sinks.push(sink.into());
        }
        if let Some(text) = &self.text {
            let sink = if is_standard_error(text) {
                SinkSpec::standard_error()
            } else {
                SinkSpec::text(std::path::absolute(text)?)
            };
            sinks.push(sink.max_size(max_size).into());
        }
        if let Some(address) = self.udp {
            let mut sink = SinkSpec::udp(address.socket);
            if !address.has_port {
                sink.port = None;
            }
            (sink.allow, sink.rate, sink.pace) = (self.udp_allow.clone(), self.udp_rate, self.udp_pace);
            (sink.limit, sink.max_size) = (self.udp_limit, max_size);
            sink.drop = self.udp_drop.map(|end| match end {
                Drop::Oldest => DropPolicy::Oldest,
                Drop::Newest => DropPolicy::Newest,
            });
            sinks.push(sink.into());
        }
        let stream = self.stream.as_ref().map(StreamSpec::to).or_else(|| self.relay.as_ref().map(StreamSpec::relay));
        #[cfg(feature = "nats")]
        let stream = stream.or_else(|| self.nats.as_ref().map(StreamSpec::to));
        if let Some(mut stream) = stream {
            let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            (stream.udp, stream.mtu) = (self.stream_udp, self.mtu);
            stream.sync_interval_ms = self.sync_interval.map(ms);
            stream.resend_buffer = self.resend_buffer;
            stream.max_bandwidth = self.max_bandwidth;
            stream.key_file = self.key_file.as_ref().map(std::path::absolute).transpose()?;
            stream.retry_ms = self.retry.map(ms);
            let mut sink = SinkSpec::stream(stream);
            sink.max_size = max_size;
            sinks.push(sink.into());
        }
        Ok(sinks)
    }

    /// The directory for CTF traces: `directory`, or a new one in it named after the current time.
    pub(crate) fn directory(&self, directory: PathBuf) -> PathBuf {
        if self.dated { dated_directory(directory) } else { directory }
    }

    /// Makes the directory for CTF traces. It must be empty, but earlier traces are removed on request.
    pub(crate) fn make_directory(&self, directory: &Path) -> Result<(), Failure> {
        if self.replace {
            remove_traces(directory).map_err(|error| Failure::Refused(error.to_string()))?;
        }
        let shown = directory.display();
        let failed = |error: io::Error| {
            let mend = shortage_mend(&error).unwrap_or("; choose another directory with `-o`");
            Failure::Refused(format!("cannot create {shown}: {error}{mend}"))
        };
        fs::create_dir_all(directory).map_err(failed)?;
        if fs::read_dir(directory).map_err(failed)?.next().is_some() {
            return Err(Failure::Refused(format!(
                "{shown} is not empty; choose a new directory with `-o`, remove its contents, or let `--replace` do so"
            )));
        }
        Ok(())
    }

    /// Fails if an output file exists already, or its directory does not exist.
    pub(crate) fn require_new_files(&self) -> Result<(), Failure> {
        let text = self.text.as_deref().filter(|text| !is_standard_error(text));
        let files = [("--dt", self.dt.as_deref()), ("--text", text)];
        for (option, file) in files.into_iter().filter_map(|(option, file)| Some((option, file?))) {
            let shown = file.display();
            if file.is_dir() {
                continue;
            }
            if file.symlink_metadata().is_ok() {
                let text = format!("{shown} exists already; remove it, or choose another file with `{option}`");
                return Err(Failure::Refused(text));
            }
            if !std::path::absolute(file)?.parent().is_some_and(Path::is_dir) {
                let text = format!(
                    "the directory of {shown} does not exist; create it, or choose another file with `{option}`"
                );
                return Err(Failure::Refused(text));
            }
        }
        Ok(())
    }
}

pub(super) fn is_standard_error(text: &Path) -> bool {
    text.as_os_str() == "-"
}

/// Parses `127.0.0.1`, `127.0.0.1:5556`, `[::1]:5556`, `:5556`.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, ArgumentError> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let with_port = text.parse().ok();
    let address = || text.trim_start_matches('[').trim_end_matches(']').parse().ok().map(|ip| SocketAddr::new(ip, 0));
    let port = || text.strip_prefix(':')?.parse().ok().map(|port| SocketAddr::new(loopback, port));
    with_port.or_else(address).or_else(port).ok_or_else(|| {
        "expected an address of this machine, optionally with a port, for example `127.0.0.1`, `0.0.0.0:5556` or `[::1]:5556`"
            .into()
    })
}

fn peer(text: &str) -> Result<String, SpecError> {
    StreamSpec::relay(text).destination().map(|_| text.to_owned())
}

#[cfg(feature = "nats")]
pub(crate) fn broker(text: &str) -> Result<String, BrokerUrlError> {
    text.parse::<Broker>().map(|_| text.to_owned())
}

/// The peer of a stream, without the credentials that a broker URL may contain.
pub(super) fn peer_of(stream: &StreamSpec) -> String {
    let urls = stream.to.split(',').map(|url| match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    });
    urls.collect::<Vec<_>>().join(",")
}

#[derive(Clone, Copy, Debug)]
struct ServerAddress {
    socket: SocketAddr,
    has_port: bool,
}

fn server_address(text: &str) -> Result<ServerAddress, ArgumentError> {
    let socket = socket_address(text)?;
    let has_port = text.parse::<IpAddr>().is_err() && !text.ends_with(']');
    Ok(ServerAddress { socket, has_port })
}

pub(crate) fn describe(sink: &SinkSpec) -> String {
    let path = sink.path().unwrap_or(Path::new("")).display();
    let most = units::bytes(sink.max_size());
    match sink {
        SinkSpec::Udp(udp) if udp.port.is_none() => format!("udp server on {}", udp.socket_address().ip()),
        SinkSpec::Udp(udp) => format!("udp server on {}", udp.socket_address()),
        SinkSpec::Stream(sink) => format!("stream to {}", peer_of(&sink.stream)),
        SinkSpec::Dt(dt) => format!("dt in {path}, {} packets", dt.packets()),
        SinkSpec::Text(TextSinkSpec { path: None, .. }) => "text on the standard error of each process".to_owned(),
        SinkSpec::Ctf(ctf) => {
            let size = ctf.rotate_size.map(|size| format!(", chunks of {}", units::bytes(size))).unwrap_or_default();
            let every = ctf
                .rotate_every_ms
                .map(Duration::from_millis)
                .map(|every| format!(", a new chunk every {}", humantime::format_duration(every)))
                .unwrap_or_default();
            let keep = ctf.keep.map(|keep| format!(", {keep} chunks are kept")).unwrap_or_default();
            format!("ctf in {path}, {most} at most{size}{every}{keep}")
        }
        sink => format!("{} in {path}, {most} at most", sink.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("0.0.0.0:5556", "0.0.0.0:5556"),
            ("[::1]:7", "[::1]:7"),
            ("::1", "[::1]:0"),
            ("[::1]", "[::1]:0"),
            (":5556", "127.0.0.1:5556"),
        ] {
            assert_eq!(socket_address(text).map(|address| address.to_string()), Ok(expected.to_owned()), "{text}");
            let has_port = server_address(text).map(|address| address.has_port);
            assert_eq!(has_port, Ok(!expected.ends_with(":0")), "{text}");
        }
        for wrong in ["", "localhost", "127.0.0.1:", "127.0.0.1:65536", "5556x"] {
            assert!(socket_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_peer_is_shown_without_its_password() {
        let shown = |to: &str| peer_of(&StreamSpec::to(to));
        assert_eq!(shown("collector.lan:5342"), "collector.lan:5342");
        assert_eq!(shown("nats://me:secret@a:4222,tls://token@b"), "nats://a:4222,tls://b");
        assert_eq!(shown("nats://a"), "nats://a");
    }
}
