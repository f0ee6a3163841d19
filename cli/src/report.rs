//! `tracectl report`: a page about a trace, in one file.
//!
//! ```text
//!   events, in order ──▶ gather ──▶ Data ──▶ JSON in the page ◀── page/report.{html,css,js}
//!                          │ tracks, kinds: counts for slices of time; histograms
//!                          │ states: what threads did, and how the time of spans divides
//!                          │ samples: spans and events, with their fields
//!   account, verify ───────┘
//! ```
//!
//! The page makes no network requests; a content security policy in it forbids them. Text from a traced program is data for the page's script, which
//! never turns it into markup.

mod account;
mod data;
mod gather;
mod kinds;
mod names;
mod sample;
mod states;
mod text;
mod tracks;

use crate::failure::{Failure, VerbResult};
use crate::message::counted;
use crate::output;
use crate::output_file;
use crate::selection::{EventSelection, TimeSelection};
use crate::statistics::Input;
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Writes an HTML page about recorded traces
///
/// The page has a timeline, histograms, losses and a search. A browser shows the file, without a network. It is bounded: below 16 MB for any trace,
/// 24 MB with `record --waits`, and usually some MB. Counts, histograms and losses are those of all selected events. Of spans the timeline has at most
/// 16,384, the longest of each thread and each 64th of the time; of single events it has as many, a random sample of each tracepoint and each 64th of
/// the time. The page says how many it contains.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl report /tmp/trace -o report.html
  tracectl report -e 'http:*' --since -10s /tmp/trace -o report.html
  tracectl report host1/ host2/ -o report.html")]
pub(crate) struct Report {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The file, which is replaced if it exists; `-` is the standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write one JSON object: `output`, `bytes`, `events`, `lost` and `lost_more`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: EventSelection,
    #[command(flatten)]
    times: TimeSelection,
}

const PAGE: &str = include_str!("report/page/report.html");
const STYLE: &str = include_str!("report/page/report.css");
const SCRIPT: [&str; 3] = [
    include_str!("report/page/model.js"),
    include_str!("report/page/timeline.js"),
    include_str!("report/page/page.js"),
];

impl Report {
    pub(crate) fn run(&self) -> VerbResult {
        let is_standard = output_file::is_standard(&self.output);
        if is_standard && self.json {
            let text = "with `-o -`, the standard output is the page: leave out `--json`";
            return Err(Failure::Usage(text.to_owned()));
        }
        let input = Input { paths: &self.paths, selection: &self.selection, times: self.times };
        let trace = input.open()?;
        let (mut data, seen) = gather::gather(&input, &trace)?;
        data.version = env!("CARGO_PKG_VERSION");
        data.paths = self.paths.iter().map(|path| path.display().to_string()).collect();
        data.selection = self.selected();
        data.account = account::accounts(&self.paths, &trace)?;
        // In a script, only `<` can start the end tag.
        let json = tracepoint_reader::json::to_string(&data).map_err(std::io::Error::from)?.replace('<', "\\u003c");
        let page = page(&json);
        output_file::write(&self.output, page.as_bytes())?;
        if self.json {
            output::json(&json!({
                "output": self.output.to_string_lossy(),
                "bytes": page.len(),
                "events": data.count,
                "lost": seen.lost,
                "lost_more": seen.lost_more,
            }))?;
        } else if !is_standard {
            let (file, size) = (self.output.display(), bytesize::ByteSize(page.len() as u64));
            let mut out = output::styled();
            writeln!(out, "{file}: {}, {size}", counted(data.count, "event"))?;
            out.flush()?;
        }
        Ok(seen.report())
    }

    /// The options that select events.
    fn selected(&self) -> String {
        let times = self.times.is_given().then_some("--since, --until");
        self.selection.options().into_iter().chain(times.map(str::to_owned)).collect::<Vec<_>>().join(" ")
    }
}

fn page(json: &str) -> String {
    let (head, rest) = PAGE.split_once("{style}").unwrap_or((PAGE, ""));
    let (body, rest) = rest.split_once("{data}").unwrap_or((rest, ""));
    let (middle, tail) = rest.split_once("{script}").unwrap_or((rest, ""));
    let script = SCRIPT.concat();
    [head, STYLE, body, json, middle, &script, tail].concat()
}
