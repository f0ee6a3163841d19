//! `tracectl view`: the events of a trace as text, from files or live.

mod clocks;
mod live;
mod printer;
mod stored;
mod unfinished;

pub(crate) use clocks::sender_note;
pub(crate) use printer::Selection;
pub(crate) use unfinished::report as report_unfinished;

use crate::failure::{Failure, VerbResult};
use crate::output;
use crate::selection::{EventSelection, TimeSelection};
use crate::time_point::Context;
use clap::{Args, ValueEnum};
use printer::Printer;
use std::path::PathBuf;
use tracepoint_reader::live::LiveUrl;
use tracepoint_reader::text::{self, TextOptions, TimeFormat};

/// Shows the events and losses of traces, one per line
///
/// Events are merged by time. Reads CTF 1.8 directories, including those of other tracers, dt files of sessions, and live sessions of a collector or
/// of `lttng-relayd`. Several traces below PATH are merged into one, and the chunks of a trace into the whole. Times of traces stored by a collector
/// are on the collector's clock, if the difference to the sender's clock is known. Damage, and packets that a dt file no longer holds, are
/// reported on the standard error; the rest is shown.
///
/// A line is the time, the program (or the thread, if its name is known) with the ids of the process and the thread, the event, and its fields:
/// `16:24:31.821593164 app[19270/19275] shop:answered path="/" status=200`.
///
/// A time is `10s ago`, `+5s` (after the beginning of the trace), `-5s` (before its end), `16:24:31.8` (on the first day of the trace),
/// `2026-11-23 16:24:31` (local time, or UTC with --utc), `2026-11-23T16:24:31Z`, or nanoseconds since 1970, like `time_ns` in --json.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl view /tmp/trace
  tracectl view -e 'shop:*' --filter 'status >= 500' /tmp/trace
  tracectl view --fields path,status --time relative /tmp/trace
  tracectl view --follow --tail 10 /tmp/trace
  tracectl view --since '5m ago' --until '4m ago' /tmp/trace
  tracectl view /var/tmp/shop.dt --tail 100
  tracectl view --clocks /var/tmp/traces
  tracectl view --clocks net://localhost/host/web-1/shop
  tracectl view /tmp/trace/chunk-000003 /tmp/trace/chunk-000004
  tracectl view --utc --date /tmp/trace | less
  tracectl view --json /tmp/trace | jq 'select(.name == \"treehash:error\").fields'
  tracectl view net://localhost
  tracectl view net://localhost/host/web-1/shop")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct View {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged into one trace. Or the URL of a live
    /// session, `net://HOST[:PORT]/host/HOSTNAME/SESSION`; without a session, the sessions of the relay are listed
    #[arg(value_name = "PATH|URL", required = true)]
    paths: Vec<PathBuf>,
    /// Follow what sessions are writing below PATH, until they have ended. An event appears when no earlier one can arrive any more: about
    /// a second after it was recorded, or three without the run directory of the session
    #[arg(short, long)]
    follow: bool,
    /// In place of events, show how the clock of each trace was aligned with the clock of the collector that stored it: the offset added to
    /// its times, and the error bound. In a live session, this is known once each trace has had an event or a synchronisation
    #[arg(long, conflicts_with_all = ["follow", "head", "tail", "since", "until", "utc", "date"])]
    clocks: bool,
    /// The shared key of the collector whose live session is viewed
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    selection: EventSelection,
    /// Show only these fields
    #[arg(long, help_heading = "Form of the lines", value_name = "NAME,…", value_delimiter = ',', conflicts_with_all = ["json", "style"])]
    fields: Option<Vec<String>>,
    #[command(flatten)]
    times: TimeSelection,
    /// Show only the first N of these events
    #[arg(long, help_heading = "Events", value_name = "N")]
    head: Option<u64>,
    /// Show only the last N of these events; with --follow, the last N of those that exist already, and all that follow
    #[arg(long, help_heading = "Events", value_name = "N", conflicts_with = "head")]
    tail: Option<u64>,
    /// Write one JSON object per line: events, losses, damage, and the number of packets without a checksum; `type` distinguishes them
    #[arg(long, help_heading = "Form of the lines")]
    json: bool,
    /// The form of a line: brief, or as `babeltrace2` prints it
    #[arg(
        long,
        help_heading = "Form of the lines",
        value_name = "STYLE",
        value_enum,
        default_value_t,
        conflicts_with = "json"
    )]
    style: Style,
    /// The form of times: time of day in the local time zone or in UTC, seconds since the beginning of the trace or since the previous event, or
    /// nanoseconds since 1970
    #[arg(
        long,
        help_heading = "Form of the lines",
        value_name = "FORM",
        value_enum,
        default_value_t,
        conflicts_with = "json"
    )]
    time: Time,
    /// The same as `--time utc`
    #[arg(long, help_heading = "Form of the lines", conflicts_with_all = ["json", "time"])]
    utc: bool,
    /// Show the date before each time
    #[arg(long, help_heading = "Form of the lines", conflicts_with = "json")]
    date: bool,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Style {
    #[default]
    Compact,
    Babeltrace,
}

/// The form of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Time {
    #[default]
    Local,
    Utc,
    Relative,
    Delta,
    Epoch,
}

impl View {
    pub(crate) fn run(&self) -> VerbResult {
        let mut urls = self.paths.iter().filter_map(|path| path.to_str()).filter(|path| LiveUrl::is_url(path));
        match urls.next() {
            None if self.key_file.is_some() => {
                Err(Failure::Usage("`--key-file` is for live sessions: name a URL, or leave it out".to_owned()))
            }
            None => self.stored(),
            Some(url) if self.paths.len() == 1 => self.live(&url.parse()?),
            Some(_) => Err(Failure::Usage("a live session is viewed alone: name one URL and nothing else".to_owned())),
        }
    }

    /// A printer for the selected events. With `several_hosts`, each line starts with the name of the host.
    fn printer(&self, context: &Context, several_hosts: bool) -> Result<Printer, Failure> {
        let filter = self.selection.filter()?;
        let selection = Selection { filter, times: self.times.resolve(context)?, head: self.head };
        let mut options = TextOptions::from(match self.style {
            Style::Compact => text::Style::Compact,
            Style::Babeltrace => text::Style::Babeltrace,
        });
        options.time = match self.time {
            Time::Utc => TimeFormat::Utc,
            Time::Local if self.utc => TimeFormat::Utc,
            Time::Local => TimeFormat::Local,
            Time::Relative => TimeFormat::Relative,
            Time::Delta => TimeFormat::Delta,
            Time::Epoch => TimeFormat::Epoch,
        };
        options.origin_ns = context.range.map(|(begin, _)| begin).filter(|_| self.time == Time::Relative);
        options.date = self.date;
        options.host = several_hosts;
        options.fields.clone_from(&self.fields);
        options.color = output::has_color();
        Ok(Printer::new((!self.json).then_some(options), selection))
    }

    /// True if times are in UTC, including those of the command line.
    fn is_utc(&self) -> bool {
        self.utc || self.time == Time::Utc
    }
}
