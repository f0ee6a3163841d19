//! `tracectl read`: reads from a UDP trace server.

mod directory;
mod dt_file;
mod ending;
mod lines;
mod objects;
mod status;

use crate::Ended;
use crate::failure::{self, Failure, Outcome};
use crate::interrupt::Interrupt;
use clap::Args;
use clap::error::ErrorKind;
use dt_file::DtFile;
use status::Status;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;
use tracepoint_reader::Event;
use tracepoint_reader::udp::wire::client::{DEFAULT_MTU, LARGEST, LEAST_MTU};
use tracepoint_reader::udp::wire::{SERVER_PORT, SERVER_PORT_VARIABLE};
use tracepoint_reader::udp::{BatchDecoder, Connection, Counts, Ending, EventBatch, Options, Report};

/// Told at the end of `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  the session has ended, and all that was sent has come
  1  what the server sent cannot be decoded
  2  the command line is wrong
  3  the output could not be written
  4  something was lost, or the session has not ended in order, and what was lost at its end is not known
  5  there is no server that can be read from: none at all, one of another protocol, or no port of ours";

/// How often signals and the status line are looked after.
const ROUND: Duration = Duration::from_millis(100);

/// Reads events from a UDP trace server, and tells which were lost on the way
///
/// Prints one line for each event as it comes, and for each loss where it happened. Takes many events in a message, with checksums and
/// exact losses, if the server offers that; else one in a message, where a loss is told in messages. The first Ctrl-C asks the server to
/// stop, and reads what is on its way; the second one ends.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl read
  tracectl read --server-address 10.0.0.7 --events-limit 1000
  tracectl read -o /tmp/trace && tracectl view /tmp/trace
  tracectl read -o /tmp/newest.dt --dt-slots 1000
  tracectl read --json | jq 'select(.type == \"loss\")'

{EXIT_CODES}"))]
pub(crate) struct Read {
    /// The server's name or address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    server_address: String,
    /// The server's port
    #[arg(long, value_name = "PORT", env = SERVER_PORT_VARIABLE, default_value_t = SERVER_PORT,
        value_parser = clap::value_parser!(u16).range(1..))]
    server_port: u16,
    /// The port to read from; 0: any
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    client_port: u16,
    /// Stop after so many events; those on their way then are read too
    #[arg(long, value_name = "N", value_parser = events_limit)]
    events_limit: Option<NonZeroU64>,
    /// Take one event in a message, whatever the server offers
    #[arg(long, conflicts_with = "output")]
    stock: bool,
    /// How many bytes a message with several events may have, headers of IP and UDP not counted
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MTU,
        value_parser = clap::value_parser!(u16).range(i64::from(LEAST_MTU)..=i64::from(LARGEST)))]
    mtu: u16,
    /// One event in a message: stop after so many seconds in which nothing came
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: u64,
    /// Write one JSON object per line: events, losses, marks, and at last `end`; told apart by `type`
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Make a CTF trace in this directory instead, losses included; it is empty, or does not exist. Where it is called *.dt, make a
    /// dt file, when the session is over; until then what comes is in a directory next to it
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// How many slots the dt file has: it keeps the newest N packets [default: as many as there are packets]
    #[arg(long, value_name = "N", requires = "output", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff))]
    dt_slots: Option<u32>,
}

fn events_limit(text: &str) -> Result<NonZeroU64, String> {
    match text.parse::<u64>() {
        Ok(number) => NonZeroU64::new(number).ok_or_else(|| "without a limit, leave the option out".to_owned()),
        Err(_) => Err("it is no number of events: 1 or more, in digits".to_owned()),
    }
}

/// Where reports go.
trait Out {
    /// Takes a report. `false`: the server sent what cannot be decoded, which was said.
    fn take(&mut self, report: Report) -> Result<bool, Failure>;

    /// What was taken so far can be seen.
    fn flush(&mut self) -> Result<(), Failure>;

    /// The session is over. `false`: not all that came is in the output, which was said.
    fn finish(self: Box<Self>, ending: Ending, counts: &Counts) -> Result<bool, Failure>;
}

impl Read {
    pub(crate) fn run(&self) -> Ended {
        let server = self.server()?;
        let options = Options {
            legacy: self.stock,
            events_limit: self.events_limit,
            mtu: self.mtu,
            window: 0,
            idle: Duration::from_secs(self.idle),
            ..Options::default()
        };
        let mut out = self.out()?;
        let unreachable = |error: io::Error| Failure::NoServer(format!("cannot read from {server}: {error}"));
        let mut connection =
            Connection::open(server, self.client_port, options).map_err(|error| match error.kind() {
                io::ErrorKind::AddrInUse => Failure::NoServer(format!(
                    "port {} is in use; name another one with --client-port, or leave the choice to the system",
                    self.client_port
                )),
                _ => unreachable(error),
            })?;
        let stop = Interrupt::once()?;
        let mut status = Status::new();
        let mut decoded = true;
        let ending = loop {
            connection.step(ROUND).map_err(unreachable)?;
            let taken = take_all(&mut connection, out.as_mut());
            if taken.is_err() {
                // Nobody needs the rest, and the server shall know.
                connection.client().stop();
                connection.step(Duration::ZERO).map_err(unreachable)?;
            }
            decoded &= taken?;
            let client = connection.client();
            if let Some(ending) = client.ending() {
                break ending;
            }
            status.show(&client.counts());
            if stop.is_asked() {
                client.stop();
            }
        };
        drop(status);
        let counts = connection.client().counts();
        if let Some(failure) = ending::no_server(ending, server, &counts) {
            return Err(failure);
        }
        decoded &= out.finish(ending, &counts)?;
        let outcome = ending::tell(ending, &counts);
        Ok(if decoded { outcome } else { Outcome::Wanting })
    }

    fn server(&self) -> Result<SocketAddr, Failure> {
        let (name, port) = (self.server_address.as_str(), self.server_port);
        let found = (name, port).to_socket_addrs().map_err(|error| error.to_string());
        let found = found.and_then(|mut found| found.next().ok_or_else(|| "it has no address".to_owned()));
        found.map_err(|reason| Failure::NoServer(format!("cannot find the server `{name}`: {reason}")))
    }

    fn out(&self) -> Result<Box<dyn Out>, Failure> {
        Ok(match &self.output {
            Some(path) if DtFile::is_one(path) => Box::new(DtFile::create(path, self.dt_slots)?),
            Some(_) if self.dt_slots.is_some() => {
                let reason = "--dt-slots is for dt files; name one: --output FILE.dt\n";
                clap::Error::raw(ErrorKind::ArgumentConflict, reason).exit()
            }
            Some(path) => Box::new(directory::Directory::create(path)?),
            None if self.json => Box::new(objects::Objects::new()),
            None => Box::new(lines::Lines::new(self.events_limit)?),
        })
    }
}

/// Hands on what happened; whether it could be decoded.
fn take_all(connection: &mut Connection, out: &mut dyn Out) -> Result<bool, Failure> {
    let mut decoded = true;
    let mut any = false;
    while let Some(report) = connection.client().report() {
        decoded &= out.take(report)?;
        any = true;
    }
    if any {
        out.flush()?;
    }
    Ok(decoded)
}

/// Has `write` write the events of a batch, up to the first that it cannot. Whether all of them could be decoded.
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
        complain(&damage.reason);
        whole = false;
    })?;
    written?;
    Ok(whole && count == u64::from(batch.events))
}

/// Says that a part of what the server sent cannot be decoded.
fn complain(reason: &str) {
    failure::say_error(&format!("the server sent what cannot be decoded: {reason}"));
}
