//! `tracectl read`: receives events from a UDP trace server.

mod directory;
mod dt_file;
mod json;
mod lines;
mod summary;

use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::Interrupt;
use crate::message;
use crate::progress::LiveLine;
use crate::units;
use clap::Args;
use clap::error::ErrorKind;
use dt_file::DtFile;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_reader::Event;
use tracepoint_reader::udp::{BatchDecoder, Connection, Counts, EventBatch, Options, Report, SessionEnd};
use tracepoint_wire::udp::client::{DEFAULT_MTU, LARGEST, MIN_MTU};
use tracepoint_wire::udp::{SERVER_PORT, SERVER_PORT_VARIABLE};

/// Maximum wait for datagrams in one step; signals and the status line are handled between steps.
const STEP: Duration = Duration::from_millis(100);

/// Receives events from a UDP trace server
///
/// Reports events that were lost on the way. Prints one line for each event as it arrives, and one for each loss where it happened. If the server
/// offers batches, messages have many events and checksums, and losses are exact; otherwise each message has one event, and losses are counted in
/// messages. The first Ctrl-C asks the server to stop, and receives the events under way; the second ends at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl read
  tracectl read --server-address 10.0.0.7 --events-limit 1000
  tracectl read -o /tmp/trace && tracectl view /tmp/trace
  tracectl read -o /tmp/newest.dt --dt-slots 1000
  tracectl read --json | jq 'select(.type == \"loss\")'")]
pub(crate) struct Read {
    /// The name or address of the server; a port here takes precedence over `--server-port`
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1")]
    server_address: String,
    /// The port of the server
    #[arg(long, value_name = "PORT", env = SERVER_PORT_VARIABLE, default_value_t = SERVER_PORT,
        value_parser = clap::value_parser!(u16).range(1..))]
    server_port: u16,
    /// The local port; 0: any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    client_port: u16,
    /// Take N events and stop; the server keeps the others for the next client. With `--legacy`, or if the server offers no batches, events
    /// already on their way are received as well
    #[arg(long, value_name = "N", value_parser = events_limit)]
    events_limit: Option<NonZeroU64>,
    /// Use the legacy layout, with one event per message, even if the server offers batches
    #[arg(long, alias = "stock", conflicts_with = "output")]
    legacy: bool,
    /// Largest message with several events, in bytes, without the headers of IP and UDP
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MTU,
        value_parser = clap::value_parser!(u16).range(i64::from(MIN_MTU)..=i64::from(LARGEST)))]
    mtu: u16,
    /// Legacy layout: stop when nothing has arrived for this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
    /// Write one JSON object per line: events, losses, marks, and finally `end`; `type` distinguishes them
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Write a CTF trace with its losses into this directory, which must be empty or not exist. A path that ends in `.dt` becomes a dt file
    /// when the session is over; until then the trace is in a directory next to it
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Number of slots of the dt file, which keeps the newest N packets [default: the number of packets]
    #[arg(long, value_name = "N", requires = "output", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff))]
    dt_slots: Option<u32>,
}

fn events_limit(text: &str) -> Result<NonZeroU64, String> {
    match text.parse::<u64>() {
        Ok(number) => NonZeroU64::new(number).ok_or_else(|| "for no limit, leave the option out".to_owned()),
        Err(_) => Err("expected a number of events, 1 or more".to_owned()),
    }
}

/// The output of a session.
trait Output {
    /// Writes a report. `false` if it could not be decoded, which has been reported.
    fn write(&mut self, report: Report) -> Result<bool, Failure>;

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Completes the output after the session. `false` if something that arrived is missing in it, which has been reported.
    fn finish(self: Box<Self>, ending: SessionEnd, counts: &Counts) -> Result<bool, Failure>;
}

impl Read {
    pub(crate) fn run(&self) -> VerbResult {
        let server = self.server()?;
        let options = Options {
            legacy: self.legacy,
            events_limit: self.events_limit,
            mtu: self.mtu,
            window: 0,
            idle: Duration::from_secs(self.idle),
            ..Options::default()
        };
        let mut output = self.output()?;
        let unreachable = |error: io::Error| Failure::NoServer(format!("cannot read from {server}: {error}"));
        let mut connection =
            Connection::open(server, self.client_port, options).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Failure::NoServer(format!(
                    "port {} is in use; choose another with --client-port, or leave the option out for a free one",
                    self.client_port
                )),
                _ => unreachable(error),
            })?;
        let stop = Interrupt::once()?;
        let mut line = LiveLine::beside_data();
        let mut decoded = true;
        let ending = loop {
            connection.step(STEP).map_err(unreachable)?;
            let written = write_all(&mut connection, output.as_mut());
            if written.is_err() {
                // The rest cannot be written: ask the server to stop.
                connection.client().stop();
                connection.step(Duration::ZERO).map_err(unreachable)?;
            }
            decoded &= written?;
            let client = connection.client();
            if let Some(ending) = client.ending() {
                break ending;
            }
            let counts = client.counts();
            line.show("events", counts.events, || {
                format!("{} lost, {} late", counts.lost_events + counts.lost_messages, counts.late_messages)
            });
            if stop.is_requested() {
                client.stop();
            }
        };
        drop(line);
        let counts = connection.client().counts();
        if let Some(failure) = summary::no_server(ending, server, &counts) {
            return Err(failure);
        }
        decoded &= output.finish(ending, &counts)?;
        let outcome = summary::print(ending, &counts);
        Ok(if decoded { outcome } else { Outcome::Incomplete })
    }

    fn server(&self) -> Result<SocketAddr, Failure> {
        let (name, port) = units::host_and_port(&self.server_address)?;
        let port = port.unwrap_or(self.server_port);
        let found = (name, port).to_socket_addrs().map_err(|error| error.to_string());
        let found = found.and_then(|mut found| found.next().ok_or_else(|| "it has no address".to_owned()));
        found.map_err(|reason| Failure::NoServer(format!("cannot find the server `{name}`: {reason}")))
    }

    fn output(&self) -> Result<Box<dyn Output>, Failure> {
        Ok(match &self.output {
            Some(path) if dt_file::is_dt_file(path) => Box::new(DtFile::create(path, self.dt_slots)?),
            Some(_) if self.dt_slots.is_some() => {
                let reason = "--dt-slots needs a dt file: --output FILE.dt\n";
                clap::Error::raw(ErrorKind::ArgumentConflict, reason).exit()
            }
            Some(path) => Box::new(directory::Directory::create(path)?),
            None if self.json => Box::new(json::Json::new()),
            None => Box::new(lines::Lines::new(self.events_limit)?),
        })
    }
}

/// Writes the reports that have arrived; returns true if all could be decoded.
fn write_all(connection: &mut Connection, output: &mut dyn Output) -> Result<bool, Failure> {
    let mut decoded = true;
    let mut any = false;
    while let Some(report) = connection.client().report() {
        decoded &= output.write(report)?;
        any = true;
    }
    if any {
        output.flush()?;
    }
    Ok(decoded)
}

/// Calls `write` for each event of a batch until it fails. Returns true if all of them could be decoded.
fn each_event(
    decoder: &mut BatchDecoder,
    batch: &EventBatch,
    mut write: impl FnMut(Event) -> io::Result<()>,
) -> Result<bool, Failure> {
    let mut whole = true;
    let mut written = Ok(());
    let event = |event| {
        if written.is_ok() {
            written = write(event);
        }
    };
    let count = decoder.events(batch, event, |damage| {
        report_damage(&damage.reason);
        whole = false;
    })?;
    written?;
    Ok(whole && count == u64::from(batch.events))
}

fn report_damage(reason: &str) {
    message::error(&format!("data from the server cannot be decoded: {reason}"));
}
