//! `tracectl view`: the events of a trace as text, from files or live.

mod clocks;
mod live;
mod printer;
mod stored;
mod time;

use crate::failure::{EXIT_CODES, Failure, VerbResult};
use clap::Args;
use printer::Printer;
use std::path::PathBuf;
use time::TimePoint;
use tracepoint_reader::live::LiveUrl;
use tracepoint_reader::text::TextOptions;

/// Shows the events of a trace, merged by time, one per line, and losses where they happened
///
/// Reads CTF 1.8 directories, also those of other tracers, dt files of sessions, and live sessions of a collector or of `lttng-relayd`.
/// Several traces below PATH are merged into one, and the chunks of a trace into the whole. Events are printed as `babeltrace2` prints them.
/// Times of traces that a collector has stored are those of its clock, as far as it knows how that of the other host differs.
/// Damage, and the packets that a dt file no longer holds, are reported on the standard error; the rest is shown.
///
/// A time is `10s ago`, `+5s` (after the beginning of the trace), `-5s` (before its end), `16:24:31.8` (of the day on which the trace begins),
/// `2026-11-23 16:24:31` (local time, or UTC with --utc), `2026-11-23T16:24:31Z`, or nanoseconds since 1970, as `time_ns` of --json.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl view /tmp/trace
  tracectl view --follow --tail 10 /tmp/trace
  tracectl view --since '5m ago' --until '4m ago' /tmp/trace
  tracectl view /var/tmp/shop.dt --tail 100
  tracectl view --clocks /var/tmp/traces
  tracectl view /tmp/trace/chunk-000003 /tmp/trace/chunk-000004
  tracectl view --utc --date /tmp/trace | less
  tracectl view --json /tmp/trace | jq 'select(.name == \"treehash:error\").fields'
  tracectl view net://localhost
  tracectl view net://localhost/host/web-1/shop

{EXIT_CODES}"))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct View {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged into one trace. Or the URL of a live
    /// session, `net://HOST[:PORT]/host/HOSTNAME/SESSION`; without a session, lists those of the relay
    #[arg(value_name = "PATH|URL", required = true)]
    paths: Vec<PathBuf>,
    /// Go on with what sessions still write below PATH, until they have ended. An event appears when no earlier one can come any more: about
    /// a second after it was recorded, or three without the run directory of the session
    #[arg(short, long)]
    follow: bool,
    /// Show only events from this time on
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<TimePoint>,
    /// Show only events up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<TimePoint>,
    /// Show only the first N of these events
    #[arg(long, value_name = "N")]
    head: Option<u64>,
    /// Show only the last N of these events; with --follow, the last N of those that exist already, and all that follow
    #[arg(long, value_name = "N", conflicts_with = "head")]
    tail: Option<u64>,
    /// Write one JSON object per line: events, losses, damage, and the number of packets without a checksum; `type` distinguishes them
    #[arg(long)]
    json: bool,
    /// Show times in UTC instead of the local time zone
    #[arg(long, conflicts_with = "json")]
    utc: bool,
    /// Show, in place of events, how the clock of each trace was aligned with that of the collector which has stored it: what is added to
    /// its times, and the error bound
    #[arg(long, conflicts_with_all = ["follow", "head", "tail", "since", "until", "utc", "date"])]
    clocks: bool,
    /// Show the date before each time
    #[arg(long, conflicts_with = "json")]
    date: bool,
}

impl View {
    pub(crate) fn run(&self) -> VerbResult {
        let mut urls = self.paths.iter().filter_map(|path| path.to_str()).filter(|path| LiveUrl::is_url(path));
        match urls.next() {
            None => self.stored(),
            Some(_) if self.clocks => {
                Err(Failure::Usage("`--clocks` shows those of stored traces: name a directory".to_owned()))
            }
            Some(url) if self.paths.len() == 1 => self.live(&url.parse()?),
            Some(_) => Err(Failure::Usage("a live session is viewed alone: name one URL and nothing else".to_owned())),
        }
    }

    fn printer(&self) -> Printer {
        let mut options = TextOptions::default();
        options.utc = self.utc;
        options.date = self.date;
        Printer::new((!self.json).then_some(options))
    }
}
